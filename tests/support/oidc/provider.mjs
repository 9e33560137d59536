// An OpenID provider for tests: the package oidc-provider behind TLS, with people who log in by any name.
//
//   provider.mjs CERTIFICATE KEY
//
// It reads commands as lines of JSON from standard input and answers each with one on standard output:
//
//   {"do": "start"}                             {"issuer": "https://127.0.0.1:PORT"}
//   {"do": "set", "idTokenSeconds": 60, ...}    changes what `settings` below has
//   {"do": "rotate"}                            other keys, with other names
//   {"do": "sign", "key": "rs", "header": {...}, "claims": {...}}
//                                               {"token": "..."}; "key": rs, es or stranger, whose key nobody serves
//   {"do": "close"}, {"do": "listen"}           nobody answers; the same port answers again
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { createInterface } from 'node:readline';

import { exportJWK, generateKeyPair, importJWK, SignJWT } from 'jose';
import Provider from 'oidc-provider';

// Standard output is for answers alone.
console.info = console.warn = console.log = console.error;

const settings = { idTokenSeconds: 300, deviceCodeSeconds: 300, emailVerified: true, groups: [], keysMaxAge: null, allowsPages: true };
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';
const CODE = 'authorization_code';
// The page of a broker may be at any port of this machine, as the programs of a native client may.
const client = (id, algorithm, grants = [DEVICE, CODE, 'refresh_token']) => ({
  client_id: id, token_endpoint_auth_method: 'none', application_type: 'native', grant_types: grants,
  response_types: grants.includes(CODE) ? ['code'] : [], redirect_uris: grants.includes(CODE) ? ['http://127.0.0.1/login'] : [],
  id_token_signed_response_alg: algorithm,
});

const keys = {};
let generation = 0;

async function makeKeys() {
  generation += 1;
  for (const [name, algorithm] of [['rs', 'RS256'], ['es', 'ES256'], ['stranger', 'RS256']]) {
    const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
    keys[name] = { ...(await exportJWK(privateKey)), alg: algorithm, use: 'sig', kid: `${name}-${generation}` };
  }
}

function makeProvider(issuer) {
  return new Provider(issuer, {
    clients: [client('muster', 'RS256'), client('muster-es', 'ES256'), client('other', 'RS256'),
      client('no-device', 'RS256', ['refresh_token'])],
    jwks: { keys: [keys.rs, keys.es] },
    cookies: { keys: ['a secret of the tests'] },
    conformIdTokenClaims: false,
    clientBasedCORS: () => settings.allowsPages,
    scopes: ['openid', 'offline_access'],
    claims: { openid: ['sub'], email: ['email', 'email_verified', 'groups'] },
    features: { deviceFlow: { enabled: true }, revocation: { enabled: true } },
    ttl: {
      IdToken: () => settings.idTokenSeconds, DeviceCode: () => settings.deviceCodeSeconds,
      AccessToken: 300, RefreshToken: 3600, Grant: 3600, Interaction: 600, Session: 600,
    },
    issueRefreshToken: async (_, ofClient) => ofClient.grantTypeAllowed('refresh_token'),
    findAccount: async (_, id) => ({
      accountId: id,
      claims: async () => ({
        sub: id, email: `${id}@example.org`, email_verified: settings.emailVerified, groups: settings.groups,
      }),
    }),
  });
}

const [certificate, key] = process.argv.slice(2);
let issuer;
let port = 0;
let server;
let answerRequest;

function listen() {
  server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) },
    (request, response) => {
      if (settings.keysMaxAge !== null) response.setHeader('Cache-Control', `public, max-age=${settings.keysMaxAge}`);
      answerRequest(request, response);
    });
  return new Promise((resolve) => {
    server.listen(port, '127.0.0.1', () => {
      port = server.address().port;
      resolve();
    });
  });
}

function serve() {
  answerRequest = makeProvider(issuer).callback();
}

const commands = {
  async start() {
    await makeKeys();
    await listen();
    issuer = `https://127.0.0.1:${port}`;
    serve();
    return { issuer };
  },
  async set({ do: _, ...changes }) {
    Object.assign(settings, changes);
    return {};
  },
  async rotate() {
    await makeKeys();
    serve();
    return {};
  },
  async sign({ key: name, header = {}, claims }) {
    const { alg, kid } = keys[name];
    const signer = await importJWK(keys[name], alg);
    return { token: await new SignJWT(claims).setProtectedHeader({ alg, kid, ...header }).sign(signer) };
  },
  async close() {
    const closed = new Promise((resolve) => { server.close(resolve); });
    server.closeAllConnections();
    await closed;
    return {};
  },
  async listen() {
    await listen();
    return {};
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(await commands[command.do](command))}\n`);
}
process.exit(0);
