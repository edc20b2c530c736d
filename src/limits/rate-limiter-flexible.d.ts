// The package types these classes, but hands them out only file by file (and is loaded in a tenth of the time that way).

declare module 'rate-limiter-flexible/lib/RateLimiterStoreAbstract' {
  import { RateLimiterStoreAbstract } from 'rate-limiter-flexible';

  export = RateLimiterStoreAbstract;
}

declare module 'rate-limiter-flexible/lib/RateLimiterRes' {
  import { RateLimiterRes } from 'rate-limiter-flexible';

  export = RateLimiterRes;
}

declare module 'rate-limiter-flexible/lib/RLWrapperTimeouts' {
  import { RLWrapperTimeouts } from 'rate-limiter-flexible';

  export = RLWrapperTimeouts;
}
