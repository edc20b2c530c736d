import { BSON, type Document } from 'mongodb';

/** MongoDB's wire protocol: OP_MSG with both kinds of sections, and OP_QUERY for a driver's first hello. */
export interface Message {
  readonly requestId: number;
  readonly opCode: number;
  readonly body: Document;
  /** The client expects no reply: an unacknowledged write. */
  readonly noReply: boolean;
}

const HEADER = 16;
const OP_REPLY = 1;
const OP_QUERY = 2004;
const OP_MSG = 2013;
const CHECKSUM_PRESENT = 1;
const MORE_TO_COME = 2;

export const MAX_MESSAGE_BYTES = 48_000_000;

/** Numbers keep their BSON types, so that a document is returned as it was stored. */
export const decoded = (bytes: Uint8Array): Document =>
  BSON.deserialize(bytes, { promoteValues: false, promoteLongs: false, promoteBuffers: false });

const documentAt = (bytes: Buffer, at: number): Buffer => bytes.subarray(at, at + bytes.readInt32LE(at));

const sequence = (bytes: Buffer): [name: string, documents: Document[]] => {
  const nameEnd = bytes.indexOf(0);
  const documents: Document[] = [];
  for (let at = nameEnd + 1; at < bytes.length;) {
    const document = documentAt(bytes, at);
    documents.push(decoded(document));
    at += document.length;
  }
  return [bytes.toString('utf8', 0, nameEnd), documents];
};

const message = (bytes: Buffer, requestId: number): Message => {
  const flags = bytes.readUInt32LE(HEADER);
  const end = bytes.length - ((flags & CHECKSUM_PRESENT) === 0 ? 0 : 4);
  let body: Document = {};
  const sequences: Document = {};
  for (let at = HEADER + 4; at < end;) {
    const kind = bytes[at];
    const length = bytes.readInt32LE(at + 1);
    const section = bytes.subarray(at + 1, at + 1 + length);
    if (kind === 0) body = decoded(section);
    else {
      const [name, documents] = sequence(section.subarray(4));
      sequences[name] = documents;
    }
    at += 1 + length;
  }
  return {
    requestId,
    opCode: OP_MSG,
    body: { ...body, ...sequences },
    noReply: (flags & MORE_TO_COME) !== 0,
  };
};

const legacyQuery = (bytes: Buffer, requestId: number): Message => {
  const nameEnd = bytes.indexOf(0, HEADER + 4);
  const database = bytes.toString('utf8', HEADER + 4, nameEnd).split('.')[0];
  const body = decoded(documentAt(bytes, nameEnd + 1 + 8));
  return { requestId, opCode: OP_QUERY, body: { ...body, $db: database }, noReply: false };
};

const parsed = (bytes: Buffer): Message => {
  const requestId = bytes.readInt32LE(4);
  const opCode = bytes.readInt32LE(12);
  if (opCode === OP_MSG) return message(bytes, requestId);
  if (opCode === OP_QUERY) return legacyQuery(bytes, requestId);
  throw new Error(`This server does not know the operation ${opCode}.`);
};

/** Splits a stream of bytes into messages. */
export const messageReader = (): ((bytes: Buffer) => readonly Message[]) => {
  let parts: Buffer[] = [];
  let size = 0;
  return (bytes) => {
    parts.push(bytes);
    size += bytes.length;
    const found: Message[] = [];
    let all = size < 4 || size >= parts[0]!.readInt32LE(0) ? Buffer.concat(parts) : undefined;
    if (all === undefined) return found;
    while (all.length >= 4 && all.length >= all.readInt32LE(0)) {
      const length = all.readInt32LE(0);
      if (length < HEADER || length > MAX_MESSAGE_BYTES) throw new Error(`A message of ${length} bytes.`);
      found.push(parsed(all.subarray(0, length)));
      all = all.subarray(length);
    }
    parts = all.length === 0 ? [] : [all];
    size = all.length;
    return found;
  };
};

const header = (length: number, responseTo: number, opCode: number): Buffer => {
  const bytes = Buffer.alloc(HEADER);
  bytes.writeInt32LE(length, 0);
  bytes.writeInt32LE(responseTo, 8);
  bytes.writeInt32LE(opCode, 12);
  return bytes;
};

export const replyTo = ({ requestId, opCode }: Message, body: Document): Buffer => {
  const document = BSON.serialize(body, { ignoreUndefined: true });
  if (opCode === OP_MSG)
    return Buffer.concat([
      header(HEADER + 5 + document.length, requestId, OP_MSG),
      Buffer.alloc(5),
      document,
    ]);
  const fields = Buffer.alloc(20);
  fields.writeInt32LE(8, 0);
  fields.writeInt32LE(1, 16);
  return Buffer.concat([
    header(HEADER + fields.length + document.length, requestId, OP_REPLY),
    fields,
    document,
  ]);
};
