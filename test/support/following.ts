export const following = async (url: string, key: string, headers: Record<string, string> = {}) => {
  const stop = new AbortController();
  const response = await fetch(url, { headers: { 'SVC-API-KEY': key, ...headers }, signal: stop.signal });
  let text = '';
  let isOver = false;
  const reading = (async () => {
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) text += chunk;
  })()
    .catch(() => undefined)
    .finally(() => (isOver = true));
  return {
    response,
    text: () => text,
    isOver: () => isOver,
    stop: async () => {
      stop.abort();
      await reading;
    },
    reading,
  };
};
