/** The kind of store for all tests that work with any: `npm run test:mongodb` sets it to mongodb. */
export const storeName = process.env['READ_MODELS'] ?? 'sqlite';
