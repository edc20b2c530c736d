/**
 * On every response of every layer. Responses are data: browsers must not sniff their type, run, frame or share them.
 * Strict-Transport-Security is up to the proxy that terminates TLS in front of this service.
 */
export const securityHeaders: Readonly<Record<string, string>> = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
};
