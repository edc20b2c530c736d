# The service as an image. docker-compose.yml runs it on KurrentDB and MongoDB; alone it keeps everything in /data.
FROM node:24.21.0-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json ./
COPY scripts scripts
COPY src src
COPY projections projections
COPY portal portal
RUN npm run package \
  && npm install --global --offline --prefix /installed tenant-ledger-*.tgz

FROM node:24.21.0-bookworm-slim
COPY --from=build /installed /usr/local
RUN install --directory --mode=700 --owner=node --group=node /data

# The operations listener stays on the container's own loopback, where the health check asks it.
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data
# Less than half of what Node takes under load for what is short-lived, at no cost that can be measured.
ENV NODE_OPTIONS=--max-semi-space-size=6
USER node
WORKDIR /data
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=3s --start-period=60s --retries=6 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8081/readyz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["tenant-ledger"]
CMD ["serve"]
