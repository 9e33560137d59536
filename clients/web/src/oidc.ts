// Login by an identity provider (OpenID Connect): authorization code with PKCE. All that is kept is in this tab's sessionStorage.

import { IdentityService } from "../client/gen/muster/v1/identity_service_pb.js";
import { broker, forget, onTokenEnd, type Renewal, setToken } from "./broker.js";

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
  /** The time by this browser's clock; 0: the broker says when the token has ended. */
  renewMs: number;
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
  iat?: number;
}

/** An answer of the provider that is none of success: a repeat would be refused, too. */
class Refused extends Error {}

const BEGUN_KEY = "muster.login";
const KEPT_KEY = "muster.session";
const PATH = "/login";
const SECRET_BYTES = 32;
// A token is renewed before its end, by half of its time if that is short.
const RENEW_BEFORE_MS = 60_000;
// Neither a wrong clock nor a short life makes a page ask the provider more often.
const MIN_RENEW_MS = 5000;
// Without an answer the page asks again after MIN_RENEW_MS, and after twice the time whenever there is none again.
const MAX_RENEW_PAUSE_MS = 60_000;
const ANSWER_MS = 20_000;
const MAX_TIMER_MS = 24 * 3600 * 1000;
// A person who logs out waits no longer for a renewal that is under way.
const LOG_OUT_MS = 3000;
// These do not say that the request was wrong.
const BUSY = [408, 425, 429];

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
  const text = `the identity provider refuses: ${description ?? error ?? `HTTP status ${answer.status}`}`;
  throw answer.status < 500 && !BUSY.includes(answer.status) ? new Refused(text) : new Error(text);
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
    refreshToken: "", renewMs: 0,
  });
  return begun.back;
}

function keep(tokens: Tokens, claims: Claims, kept: Kept): void {
  const audience = [claims.aud ?? []].flat();
  if (claims.iss !== kept.issuer || !audience.includes(kept.clientId)) throw new Error("the identity provider's token was made for another program");
  // The clock of this browser may be wrong; the token's life is the provider's own difference.
  const lifeMs = ((claims.exp ?? NaN) - (claims.iat ?? NaN)) * 1000;
  const waitMs = Math.max(lifeMs - Math.min(RENEW_BEFORE_MS, lifeMs / 2), MIN_RENEW_MS);
  const next: Kept = { ...kept, refreshToken: tokens.refresh_token ?? kept.refreshToken, renewMs: Number.isFinite(waitMs) ? Date.now() + waitMs : 0 };
  sessionStorage.setItem(KEPT_KEY, JSON.stringify(next));
  setToken(tokens.id_token ?? "");
  goOn();
}

function kept(): Kept | undefined {
  const text = sessionStorage.getItem(KEPT_KEY);
  return text ? (JSON.parse(text) as Kept) : undefined;
}

let timer: ReturnType<typeof setTimeout> | undefined;
let pauseMs = MIN_RENEW_MS;
let renewal: { of: string; outcome: Promise<Renewal> } | undefined;

/** Renews the token of this tab's login before its end. */
export function goOn(): void {
  pauseMs = MIN_RENEW_MS;
  const now = kept();
  if (now?.refreshToken && now.renewMs) renewAfter(Math.min(Math.max(now.renewMs - Date.now(), 0), MAX_TIMER_MS));
  else clearTimeout(timer);
}

function renewAfter(ms: number): void {
  clearTimeout(timer);
  timer = setTimeout(() => void renew(), ms);
}

/** A refresh token that is used twice would end the login, so there is one renewal at a time. */
function renew(): Promise<Renewal> {
  const of = sessionStorage.getItem(KEPT_KEY) ?? "";
  if (renewal?.of === of) return renewal.outcome;
  const begun = { of, outcome: renewNow(of).finally(() => {
    if (renewal === begun) renewal = undefined;
  }) };
  renewal = begun;
  return begun.outcome;
}

async function renewNow(of: string): Promise<Renewal> {
  const now = kept();
  if (!now?.refreshToken) return "over";
  const isSame = (): boolean => sessionStorage.getItem(KEPT_KEY) === of;
  let tokens: Tokens;
  try {
    tokens = (await answerOf(now.tokenEndpoint, { grant_type: "refresh_token", refresh_token: now.refreshToken, client_id: now.clientId })) as Tokens;
  } catch (thrown) {
    // The token is good until its end; the broker says when that has come.
    if (thrown instanceof Refused || !isSame()) return "over";
    renewAfter(pauseMs);
    pauseMs = Math.min(pauseMs * 2, MAX_RENEW_PAUSE_MS);
    return "away";
  }
  if (!isSame()) {
    // The person has left, or logged in otherwise; nobody may use what has come now.
    await revoke({ ...now, refreshToken: tokens.refresh_token ?? now.refreshToken });
    return "over";
  }
  try {
    keep(tokens, claimsOf(tokens.id_token ?? ""), now);
    return "renewed";
  } catch {
    return "over";
  }
}

onTokenEnd(renew);

async function revoke(session: Kept): Promise<void> {
  if (!session.refreshToken || !session.revocationEndpoint) return;
  // The tab forgets it all the same if the provider is away.
  await answerOf(session.revocationEndpoint, { token: session.refreshToken, client_id: session.clientId }).catch(() => {});
}

/** Forgets the login, and tells the provider. */
export async function logOut(): Promise<void> {
  const now = kept();
  const pending = renewal?.outcome;
  clearTimeout(timer);
  forget();
  if (now) await revoke(now);
  // Its token is revoked as well, which needs this page.
  await Promise.race([pending, new Promise((resolve) => setTimeout(resolve, pending ? LOG_OUT_MS : 0))]);
}
