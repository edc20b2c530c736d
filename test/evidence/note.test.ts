import { createHash, randomBytes } from 'node:crypto';
import {
  consistencyText,
  evidenceKey,
  openCheckpoint,
  originOf,
  proofText,
  readProof,
  signedCheckpoint,
  verifierKey,
} from '../../src/evidence/note';
import { EMPTY_ROOT, leafHash } from '../../src/evidence/tree';

const KEY = evidenceKey('a secret of a service');
const ORIGIN = originOf('0190d5a2-6a3c-7b54-8c1f-2f1c9a4e7d10');
const CHECKPOINT = { origin: ORIGIN, size: 1234, root: leafHash('root') };
const NOTE = signedCheckpoint(CHECKPOINT, KEY);
const VERIFIER = verifierKey(ORIGIN, KEY);

describe('a key', () => {
  it('is NAME+ID+KEY for those who verify, where the ID is the beginning of a hash of both', () => {
    const [name = '', id = '', ...key] = VERIFIER.split('+');
    const bytes = Buffer.from(key.join('+'), 'base64');
    expect([name, bytes.length, bytes[0]]).toEqual([ORIGIN, 33, 1]);
    expect(bytes.subarray(1)).toEqual(KEY.publicBytes);
    const hash = createHash('sha256').update(`${name}\n`).update(bytes).digest('hex');
    expect(id).toBe(hash.slice(0, 8));
  });

  it('is the same for the same secret, for ever, and another one for another', () => {
    expect(evidenceKey('a secret of a service').publicBytes).toEqual(KEY.publicBytes);
    expect(KEY.publicBytes.toString('hex')).toBe(
      '3e76c8eb37bf9a5e10a3d0e57d3d5c822684c6f26a8973e3e57351beba6d8fe3',
    );
    expect(evidenceKey('another secret').publicBytes).not.toEqual(KEY.publicBytes);
  });

  it('is read as others write it: the one in the documentation of Go', () => {
    const note =
      "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n\n" +
      '— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6Ryy' +
      'BwJnAM=\n';
    const key = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
    // It is signed, but it is no checkpoint.
    expect(() => openCheckpoint(note, key)).toThrow('It is no checkpoint');
  });
});

describe('a checkpoint', () => {
  it('is three lines, an empty one and a signature', () => {
    const [text = '', signature = ''] = NOTE.split('\n\n');
    expect(text).toBe(`${ORIGIN}\n1234\n${CHECKPOINT.root.toString('base64')}`);
    expect(signature).toMatch(/^— tenant-ledger\/tenants\/[0-9a-f-]{36} [A-Za-z0-9+/]{91}=\n$/);
  });

  it.each([
    CHECKPOINT,
    { origin: ORIGIN, size: 0, root: EMPTY_ROOT },
    { origin: ORIGIN, size: 2 ** 40, root: leafHash('x') },
  ])('opens with its key: $size', (checkpoint) => {
    expect(openCheckpoint(signedCheckpoint(checkpoint, KEY), VERIFIER)).toEqual(checkpoint);
  });

  it('opens with signatures of others before and after its own', () => {
    const other = signedCheckpoint(CHECKPOINT, evidenceKey('another')).split('\n\n')[1] ?? '';
    const witness = `— witness.example ${randomBytes(72).toString('base64')}\n`;
    const [text = '', own = ''] = NOTE.split('\n\n');
    expect(openCheckpoint(`${text}\n\n${witness}${other}${own}${witness}`, VERIFIER)).toEqual(CHECKPOINT);
  });

  const NOT_SIGNED = 'was not signed by this key';
  const root = CHECKPOINT.root.toString('base64');
  it.each([
    ['another size', NOTE.replace('\n1234\n', '\n1235\n'), NOT_SIGNED],
    ['another root', NOTE.replace(root, leafHash('other').toString('base64')), NOT_SIGNED],
    ['another origin', NOTE.replaceAll('2f1c9a', '2f1c9b'), 'The checkpoint is of'],
    ['another origin in the text only', NOTE.replace('2f1c9a', '2f1c9b'), 'The checkpoint is of'],
    ['another name before the signature', NOTE.replace('— tenant', '— Tenant'), NOT_SIGNED],
    ['another signature', NOTE.replace(/.{10}=\n$/, 'AAAAAAAAAA=\n'), NOT_SIGNED],
    ['half a signature', NOTE.slice(0, -30), NOT_SIGNED],
    ['no signature', NOTE.slice(0, NOTE.indexOf('—')), NOT_SIGNED],
    ['a line more', NOTE.replace('\n\n', '\nmore\n\n'), NOT_SIGNED],
    ['a size with a zero before it', NOTE.replace('\n1234\n', '\n01234\n'), 'It is no checkpoint'],
    ['a short root', NOTE.replace(root, root.slice(4)), 'It is no checkpoint'],
    ['other ends of lines', NOTE.replaceAll('\n', '\r\n'), 'It is no checkpoint'],
    ['nothing', '', 'It is no checkpoint'],
  ])('with %s is refused', (_, note, why) => {
    expect(note).not.toBe(NOTE);
    expect(() => openCheckpoint(note, VERIFIER)).toThrow(why);
  });

  it('signed by another key is refused', () => {
    const other = evidenceKey('another');
    expect(() => openCheckpoint(signedCheckpoint(CHECKPOINT, other), VERIFIER)).toThrow(NOT_SIGNED);
    expect(() => openCheckpoint(NOTE, verifierKey(ORIGIN, other))).toThrow(NOT_SIGNED);
    const name = originOf('another');
    expect(() => openCheckpoint(NOTE, verifierKey(name, KEY))).toThrow('The checkpoint is of');
  });

  it('of an empty log is refused with another root, even if it is signed', () => {
    const note = signedCheckpoint({ ...CHECKPOINT, size: 0 }, KEY);
    expect(() => openCheckpoint(note, VERIFIER)).toThrow('The checkpoint of an empty log');
  });

  it.each([
    '',
    'x',
    ORIGIN,
    VERIFIER.slice(0, -4),
    VERIFIER.replace('tenants', 'tenant'),
    VERIFIER.replace('+A', '+B'),
  ])('is not opened by what is no key: %s', (key) => {
    expect(() => openCheckpoint(NOTE, key)).toThrow('The key is no verifier key');
  });
});

describe('a proof', () => {
  const hashes = ['a', 'b', 'c'].map((text) => leafHash(text));

  it('is a text that can be read', () => {
    for (const proof of [hashes, []]) {
      const text = proofText(7, proof, NOTE);
      expect(text.startsWith('c2sp.org/tlog-proof@v1\nindex 7\n')).toBe(true);
      expect(readProof(text)).toEqual({ index: 7, hashes: proof, checkpoint: NOTE });
    }
  });

  it('may have something of others before its index, which is not trusted', () => {
    const text = proofText(0, hashes, NOTE).replace('\nindex', '\nextra eA==\nindex');
    expect(readProof(text)).toEqual({ index: 0, hashes, checkpoint: NOTE });
  });

  const TEXT = proofText(7, hashes, NOTE);
  it.each([
    ['of another version', TEXT.replace('v1', 'v2')],
    ['without an index', TEXT.replace('index 7\n', '')],
    ['with an index below 0', TEXT.replace('index 7', 'index -7')],
    ['with a zero before its index', TEXT.replace('index 7', 'index 07')],
    ['with a short hash', TEXT.replace(/=\n/, '\n')],
    ['without a checkpoint', TEXT.slice(0, TEXT.indexOf('\n\n'))],
    ['that is empty', ''],
  ])('%s is refused', (_, text) => {
    expect(text).not.toBe(TEXT);
    expect(() => readProof(text)).toThrow('It is no proof');
  });

  it('that a log begins with an older one names its size', () => {
    expect(consistencyText(5, hashes, NOTE)).toBe(
      `old 5\n${hashes.map((hash) => hash.toString('base64')).join('\n')}\n\n${NOTE}`,
    );
  });
});
