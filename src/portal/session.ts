import { hash, randomBytes } from 'node:crypto';
import { sealing } from './sealing';

const SESSION_MS = 8 * 3_600_000;
const TICKET_MS = 30_000;

interface Session {
  readonly key: string;
  readonly until: number;
}

/** What a ticket lets a browser download. */
interface Download {
  /** Path and query in the API. */
  readonly target: string;
  readonly accept: string;
  /** The name of the file. */
  readonly name: string;
}

interface Ticket extends Download {
  readonly session: string;
  readonly nonce: string;
  readonly until: number;
}

/** Names the sessions of a key. Not the key's own digest, which is what the ledger knows it by. */
export const identityOf = (key: string): string => hash('sha256', `portal session ${key}`, 'base64url');

/** The key, sealed into a cookie: nothing is stored here, and scripts never see it. */
export const sessions = (secret: string, now: () => number = Date.now) => {
  const { seal, open } = sealing<Session>(secret, 'portal session');
  return {
    cookieOf: (key: string): string => seal({ key, until: now() + SESSION_MS }),
    /** Undefined: there is no session, or it has expired. */
    keyIn: (cookie: string | undefined): string | undefined => {
      const session = cookie === undefined ? undefined : open(cookie);
      return session !== undefined && session.until > now() ? session.key : undefined;
    },
  };
};

/**
 * A link cannot send the header that every other request of the portal needs. So a page first gets a ticket for one
 * download, which works once (per instance), for 30 seconds, and only with the session that it was made in.
 */
export const tickets = (secret: string, now: () => number = Date.now) => {
  const { seal, open } = sealing<Ticket>(secret, 'portal ticket');
  const used = new Map<string, number>();
  const forgetOld = (): void => {
    for (const [nonce, until] of used) if (until <= now()) used.delete(nonce);
  };
  return {
    issue: (key: string, download: Download): string =>
      seal({
        ...download,
        session: identityOf(key),
        nonce: randomBytes(12).toString('base64url'),
        until: now() + TICKET_MS,
      }),
    /** Undefined: it is not valid, or no longer. */
    use: (key: string, sealed: string): Download | undefined => {
      forgetOld();
      const ticket = open(sealed);
      if (ticket === undefined || ticket.until <= now() || used.has(ticket.nonce)) return undefined;
      if (ticket.session !== identityOf(key)) return undefined;
      used.set(ticket.nonce, ticket.until);
      return ticket;
    },
  };
};
