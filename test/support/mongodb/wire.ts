import { BSON, type Document } from 'mongodb';

/** A message of MongoDB's wire protocol, as much of it as a proxy needs. */
export interface Message {
  readonly bytes: Buffer;
  readonly requestId: number;
  readonly responseTo: number;
  /** The command or the reply. Empty in the legacy messages of a driver's first hello. */
  readonly body: Document;
}

const HEADER = 16;
const OP_MSG = 2013;
const CHECKSUM_PRESENT = 1;

const documentAt = (bytes: Buffer, at: number): Buffer => bytes.subarray(at, at + bytes.readInt32LE(at));

/** The documents of a bulk write follow the command, in a section of their own. They are parsed when they are looked at. */
const addSequence = (body: Document, bytes: Buffer): void => {
  const nameEnd = bytes.indexOf(0);
  const documents = (): readonly Document[] => {
    const found: Document[] = [];
    for (let at = nameEnd + 1; at < bytes.length;) {
      const document = documentAt(bytes, at);
      found.push(BSON.deserialize(document));
      at += document.length;
    }
    return found;
  };
  Object.defineProperty(body, bytes.toString('utf8', 0, nameEnd), { get: documents, enumerable: true });
};

const bodyOf = (bytes: Buffer): Document => {
  if (bytes.readInt32LE(12) !== OP_MSG) return {};
  const end = bytes.length - ((bytes.readUInt32LE(HEADER) & CHECKSUM_PRESENT) === 0 ? 0 : 4);
  const body: Document = {};
  for (let at = HEADER + 4; at < end;) {
    const section = documentAt(bytes, at + 1);
    if (bytes[at] === 0) Object.assign(body, BSON.deserialize(section));
    else addSequence(body, section.subarray(4));
    at += 1 + section.length;
  }
  return body;
};

/** Its body is parsed when it is looked at: most replies are only passed on. */
const messageOf = (bytes: Buffer): Message => {
  let body: Document | undefined;
  return {
    bytes,
    requestId: bytes.readInt32LE(4),
    responseTo: bytes.readInt32LE(8),
    get body() {
      return (body ??= bodyOf(bytes));
    },
  };
};

export const messageReader = (): ((bytes: Buffer) => readonly Message[]) => {
  let rest: Buffer[] = [];
  let size = 0;
  return (bytes) => {
    rest.push(bytes);
    size += bytes.length;
    const isWhole = size < 4 || size >= rest[0]!.readInt32LE(0);
    if (!isWhole) return [];
    let all = Buffer.concat(rest);
    const found: Message[] = [];
    while (all.length >= HEADER && all.length >= all.readInt32LE(0)) {
      const one = all.subarray(0, all.readInt32LE(0));
      found.push(messageOf(one));
      all = all.subarray(one.length);
    }
    [rest, size] = [all.length === 0 ? [] : [all], all.length];
    return found;
  };
};

export const replyTo = ({ requestId }: Pick<Message, 'requestId'>, body: Document): Buffer => {
  const document = BSON.serialize(body);
  const head = Buffer.alloc(HEADER + 5);
  head.writeInt32LE(head.length + document.length, 0);
  head.writeInt32LE(requestId, 8);
  head.writeInt32LE(OP_MSG, 12);
  return Buffer.concat([head, document]);
};
