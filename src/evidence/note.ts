import { createPrivateKey, createPublicKey, hash, hkdfSync, sign, verify, type KeyObject } from 'node:crypto';
import { EMPTY_ROOT, type Hash } from './tree';

/** Checkpoints and proofs as texts: C2SP signed notes (tlog-checkpoint, Ed25519), and tlog-proof@v1. */

export interface Checkpoint {
  /** Which log it is of, and the name of the key that signs it. */
  readonly origin: string;
  readonly size: number;
  readonly root: Hash;
}

export const originOf = (tenantId: string): string => `tenant-ledger/tenants/${tenantId}`;

const ED25519 = 1;
const SEED_BYTES = 32;
const INFO = 'tenant-ledger evidence';
/** What stands before the bytes of a key in DER. */
const PRIVATE = Buffer.from('302e020100300506032b657004220420', 'hex');
const PUBLIC = Buffer.from('302a300506032b6570032100', 'hex');

/** The bytes of the public key of a service. The same secret always gives the same key. */
export interface EvidenceKey {
  readonly publicBytes: Buffer;
  readonly sign: (text: string) => Buffer;
}

export const evidenceKey = (secret: string): EvidenceKey => {
  const seed = Buffer.from(hkdfSync('sha256', secret, '', INFO, SEED_BYTES));
  const key = createPrivateKey({ key: Buffer.concat([PRIVATE, seed]), format: 'der', type: 'pkcs8' });
  const publicBytes = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(PUBLIC.length);
  return { publicBytes, sign: (text) => sign(null, Buffer.from(text), key) };
};

/** The first bytes of a signature say which key made it. */
const keyIdOf = (name: string, publicBytes: Buffer): Buffer => {
  const named = Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(ED25519), publicBytes]);
  return hash('sha256', named, 'buffer').subarray(0, 4);
};

/** A key by which others check the checkpoints of a log: `NAME+ID+KEY`. */
export const verifierKey = (origin: string, { publicBytes }: Pick<EvidenceKey, 'publicBytes'>): string => {
  const key = Buffer.concat([Buffer.of(ED25519), publicBytes]).toString('base64');
  return `${origin}+${keyIdOf(origin, publicBytes).toString('hex')}+${key}`;
};

const SIGNED_BY = '\u2014 ';

export const signedCheckpoint = ({ origin, size, root }: Checkpoint, key: EvidenceKey): string => {
  const text = `${origin}\n${size}\n${root.toString('base64')}\n`;
  const signature = Buffer.concat([keyIdOf(origin, key.publicBytes), key.sign(text)]).toString('base64');
  return `${text}\n${SIGNED_BY}${origin} ${signature}\n`;
};

interface Verifier {
  readonly name: string;
  readonly id: Buffer;
  readonly key: KeyObject;
}

const verifierOf = (text: string): Verifier => {
  const [, name = '', id = '', key = ''] =
    /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)$/.exec(text.trim()) ?? [];
  const bytes = Buffer.from(key, 'base64');
  const isKnown = bytes.length === 1 + SEED_BYTES && bytes[0] === ED25519;
  if (!isKnown || keyIdOf(name, bytes.subarray(1)).toString('hex') !== id)
    throw new Error('The key is no verifier key of Ed25519: NAME+ID+KEY, as evidence key prints it.');
  const der = Buffer.concat([PUBLIC, bytes.subarray(1)]);
  const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' });
  return { name, id: Buffer.from(id, 'hex'), key: publicKey };
};

/** Whether one of the lines is a signature of the text by this key. Signatures by others do not count. */
const isSigned = (text: string, lines: readonly string[], { name, id, key }: Verifier): boolean =>
  lines.some((line) => {
    const start = `${SIGNED_BY}${name} `;
    if (!line.startsWith(start)) return false;
    const bytes = Buffer.from(line.slice(start.length), 'base64');
    return bytes.subarray(0, 4).equals(id) && verify(null, Buffer.from(text), key, bytes.subarray(4));
  });

/** The checkpoint in a signed note. Throws if it is none, or is not signed by this key. */
export const openCheckpoint = (note: string, key: string): Checkpoint => {
  const verifier = verifierOf(key);
  const end = note.indexOf('\n\n');
  const text = note.slice(0, end + 1);
  const [origin = '', size = '', root = ''] = text.split('\n');
  const isCheckpoint = end > 0 && /^(0|[1-9][0-9]{0,15})$/.test(size) && /^[A-Za-z0-9+/]{43}=$/.test(root);
  if (!isCheckpoint)
    throw new Error('It is no checkpoint: its origin, size and root, an empty line and a signature.');
  if (origin !== verifier.name)
    throw new Error(`The checkpoint is of ${origin}, the key of ${verifier.name}.`);
  if (!isSigned(text, note.slice(end + 2).split('\n'), verifier))
    throw new Error('The checkpoint was not signed by this key, or was changed after that.');
  const checkpoint = { origin, size: Number(size), root: Buffer.from(root, 'base64') };
  if (checkpoint.size === 0 && !checkpoint.root.equals(EMPTY_ROOT))
    throw new Error('The checkpoint of an empty log has another root than the hash of nothing.');
  return checkpoint;
};

const PROOF = 'c2sp.org/tlog-proof@v1';

const withCheckpoint = (head: string, hashes: readonly Hash[], checkpoint: string): string =>
  [head, ...hashes.map((each) => each.toString('base64')), '', checkpoint].join('\n');

export const proofText = (index: number, hashes: readonly Hash[], checkpoint: string): string =>
  withCheckpoint(`${PROOF}\nindex ${index}`, hashes, checkpoint);

export interface Proof {
  readonly index: number;
  readonly hashes: readonly Hash[];
  /** The signed note. */
  readonly checkpoint: string;
}

export const readProof = (text: string): Proof => {
  const end = text.indexOf('\n\n');
  const [head, ...lines] = text.slice(0, Math.max(0, end)).split('\n');
  const [at = '', ...hashes] = lines[0]?.startsWith('extra ') === true ? lines.slice(1) : lines;
  const [, index] = /^index (0|[1-9][0-9]{0,15})$/.exec(at) ?? [];
  if (head !== PROOF || index === undefined || !hashes.every((each) => /^[A-Za-z0-9+/]{43}=$/.test(each)))
    throw new Error(`It is no proof: ${PROOF}, an index, hashes, an empty line and a checkpoint.`);
  const decoded = hashes.map((each) => Buffer.from(each, 'base64'));
  return { index: Number(index), hashes: decoded, checkpoint: text.slice(end + 2) };
};

/** The proof that a log begins with an older one, as a text. */
export const consistencyText = (older: number, hashes: readonly Hash[], checkpoint: string): string =>
  withCheckpoint(`old ${older}`, hashes, checkpoint);
