// Login by an identity provider (OpenID Connect): authorization code with PKCE. All that is kept is in this tab's sessionStorage.

import { IdentityService } from "../client/gen/muster/v1/identity_service_pb.js";
import { broker, forget, onTokenEnd, setToken } from "./broker.js";

export interface Provider {
  issuer: string;
  clientId: string;
  scopes: string;
}

/** The parts of a provider's metadata that are used here. */
interface Metadata {
  issuer: string;
  authorization_endpoint: string;
  token_endpoint: string;
  revocation_endpoint?: string;
}

/** A login that has been begun. */
interface Begun {
  provider: Provider;
  metadata: Metadata;
  state: string;
  nonce: string;
  verifier: string;
  back: string;
}

/** A login that goes on. */
interface Kept {
  clientId: string;
  issuer: string;
  tokenEndpoint: string;
  revocationEndpoint: string;
  refreshToken: string;
  expiresMs: number;
}

interface Tokens {
  id_token?: string;
  refresh_token?: string;
}

interface Claims {
  iss?: string;
  aud?: string | string[];
  nonce?: string;
  exp?: number;
}

const BEGUN_KEY = "muster.login";
const KEPT_KEY = "muster.session";
const PATH = "/login";
const SECRET_BYTES = 32;
// A token is renewed before its end, by half of its time if that is short.
const RENEW_BEFORE_MS = 60_000;
const ANSWER_MS = 20_000;
const MAX_TIMER_MS = 24 * 3600 * 1000;

/** The identity providers of the broker. */
export async function providers(): Promise<Provider[]> {
  const { issuer, clientId, scopes } = await broker.ask(IdentityService.method.getLoginInfo, {});
  return issuer ? [{ issuer, clientId, scopes }] : [];
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

const secret = (): string => base64url(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)));

const redirect = (): string => location.origin + PATH;

async function answerOf(url: string, form?: Record<string, string>): Promise<unknown> {
  let answer: Response;
  try {
    const body = form ? { method: "POST", body: new URLSearchParams(form) } : {};
    answer = await fetch(url, { ...body, headers: { accept: "application/json" }, credentials: "omit", redirect: "error", signal: AbortSignal.timeout(ANSWER_MS) });
  } catch (thrown) {
    throw new Error(`the identity provider does not answer this page at ${url}: ${(thrown as Error).message}. It must be up, and allow calls of pages ` +
      `from ${location.origin} (CORS)`);
  }
  const words: unknown = await answer.json().catch(() => ({}));
  if (answer.ok) return words;
  const { error, error_description: description } = words as { error?: string; error_description?: string };
  throw new Error(`the identity provider refuses: ${description ?? error ?? `HTTP status ${answer.status}`}`);
}

/** An address of the provider's own host: the policy of the page lets it call no other. */
function own(issuer: string, name: string, url: unknown): string {
  if (typeof url === "string" && URL.canParse(url) && new URL(url).origin === new URL(issuer).origin) return url;
  throw new Error(`the identity provider's ${name} is ${JSON.stringify(url)}, which is not at ${new URL(issuer).origin}; a page can log in only there. Use a token`);
}

async function discover(issuer: string): Promise<Metadata> {
  const found = (await answerOf(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`)) as Partial<Metadata>;
  if (found.issuer !== issuer) throw new Error(`the identity provider says that it is ${JSON.stringify(found.issuer)}, and the broker that it is "${issuer}"`);
  const { authorization_endpoint: authorization } = found;
  if (!authorization || !/^https?:\/\//.test(authorization)) throw new Error("the identity provider names no authorization_endpoint");
  return {
    issuer, authorization_endpoint: authorization, token_endpoint: own(issuer, "token_endpoint", found.token_endpoint),
    ...(found.revocation_endpoint ? { revocation_endpoint: own(issuer, "revocation_endpoint", found.revocation_endpoint) } : {}),
  };
}

/** Leaves the page for the provider's. */
export async function begin(provider: Provider): Promise<void> {
  if (!isSecureContext) throw new Error("a browser logs in by an identity provider only over https, or at 127.0.0.1 or localhost");
  const metadata = await discover(provider.issuer);
  const back = location.pathname === PATH ? "/jobs" : location.pathname + location.search;
  const begun: Begun = { provider, metadata, state: secret(), nonce: secret(), verifier: secret(), back };
  sessionStorage.setItem(BEGUN_KEY, JSON.stringify(begun));
  const challenge = base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(begun.verifier))));
  const url = new URL(metadata.authorization_endpoint);
  for (const [name, value] of Object.entries({
    response_type: "code", client_id: provider.clientId, redirect_uri: redirect(), scope: provider.scopes, state: begun.state, nonce: begun.nonce,
    code_challenge: challenge, code_challenge_method: "S256",
  })) url.searchParams.set(name, value);
  location.assign(url);
}

/** True if the address is that to which a provider sends people back. */
export const isReturn = (): boolean => location.pathname === PATH && /[?&](code|error)=/.test(location.search);

/** The claims of a token that came straight from the provider. The broker verifies its signature. */
function claimsOf(token: string): Claims {
  try {
    const part = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(part), (one) => one.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)) as Claims;
  } catch {
    throw new Error("the identity provider sent an ID token that is none");
  }
}

/** Ends the login that the address brings back. Returns the address at which it began. */
export async function finish(): Promise<string> {
  const query = new URLSearchParams(location.search);
  // The code is good once, and belongs into no history.
  history.replaceState(null, "", PATH);
  const text = sessionStorage.getItem(BEGUN_KEY);
  sessionStorage.removeItem(BEGUN_KEY);
  const begun = text ? (JSON.parse(text) as Begun) : undefined;
  if (!begun || query.get("state") !== begun.state) throw new Error("this login was not begun in this tab; log in again");
  const { provider, metadata } = begun;
  if (query.has("iss") && query.get("iss") !== provider.issuer) throw new Error("another identity provider answered than was asked; log in again");
  const error = query.get("error");
  if (error !== null) throw new Error(`the identity provider refuses: ${query.get("error_description") ?? error}`);
  const tokens = (await answerOf(metadata.token_endpoint, {
    grant_type: "authorization_code", code: query.get("code") ?? "", redirect_uri: redirect(), client_id: provider.clientId, code_verifier: begun.verifier,
  })) as Tokens;
  const claims = claimsOf(tokens.id_token ?? "");
  if (claims.nonce !== begun.nonce) throw new Error("the identity provider's token was made for another login; log in again");
  keep(tokens, claims, {
    clientId: provider.clientId, issuer: provider.issuer, tokenEndpoint: metadata.token_endpoint, revocationEndpoint: metadata.revocation_endpoint ?? "",
    refreshToken: "", expiresMs: 0,
  });
  return begun.back;
}

function keep(tokens: Tokens, claims: Claims, kept: Kept): void {
  const audience = [claims.aud ?? []].flat();
  if (claims.iss !== kept.issuer || !audience.includes(kept.clientId)) throw new Error("the identity provider's token was made for another program");
  const next: Kept = { ...kept, refreshToken: tokens.refresh_token ?? kept.refreshToken, expiresMs: (claims.exp ?? 0) * 1000 };
  sessionStorage.setItem(KEPT_KEY, JSON.stringify(next));
  setToken(tokens.id_token ?? "");
  goOn();
}

function kept(): Kept | undefined {
  const text = sessionStorage.getItem(KEPT_KEY);
  return text ? (JSON.parse(text) as Kept) : undefined;
}

let timer: ReturnType<typeof setTimeout> | undefined;
let renewal: Promise<boolean> | undefined;

/** Renews the token of this tab's login before its end. */
export function goOn(): void {
  clearTimeout(timer);
  const now = kept();
  if (!now?.refreshToken) return;
  const leftMs = now.expiresMs - Date.now();
  const beforeMs = Math.min(RENEW_BEFORE_MS, Math.max(leftMs, 0) / 2);
  timer = setTimeout(() => void renew(), Math.min(leftMs - beforeMs, MAX_TIMER_MS));
}

/** Returns false if the login is over. A refresh token that is used twice would end it, so there is one renewal at a time. */
function renew(): Promise<boolean> {
  renewal ??= renewNow().finally(() => {
    renewal = undefined;
  });
  return renewal;
}

async function renewNow(): Promise<boolean> {
  const now = kept();
  if (!now?.refreshToken) return false;
  try {
    const tokens = (await answerOf(now.tokenEndpoint, { grant_type: "refresh_token", refresh_token: now.refreshToken, client_id: now.clientId })) as Tokens;
    if (!tokens.id_token) return false;
    keep(tokens, claimsOf(tokens.id_token), now);
    return true;
  } catch {
    // The token is good until its end; the broker says when that has come.
    return false;
  }
}

onTokenEnd(renew);

/** Forgets the login, and tells the provider. */
export async function logOut(): Promise<void> {
  const now = kept();
  clearTimeout(timer);
  forget();
  if (!now?.refreshToken || !now.revocationEndpoint) return;
  // The tab forgets it all the same if the provider is away.
  await answerOf(now.revocationEndpoint, { token: now.refreshToken, client_id: now.clientId }).catch(() => {});
}
