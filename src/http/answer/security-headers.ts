/**
 * On every answer of every layer. Answers are data: no browser should guess their type, run, frame or share them. There
 * is no Strict-Transport-Security: that is for whoever ends TLS in front of this plain HTTP.
 */
export const securityHeaders: Readonly<Record<string, string>> = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
};
