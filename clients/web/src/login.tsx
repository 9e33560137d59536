// Who comes in: by a token, or by an identity provider.

import { useEffect, useState } from "preact/hooks";
import type { MusterError } from "../client/errors.js";
import { CredentialKind, type WhoAmIResponse } from "../client/gen/muster/v1/identity_service_pb.js";
import { asError, broker, forget, setToken } from "./broker.js";
import { begin, finish, isReturn, type Provider, providers } from "./oidc.js";
import { go } from "./router.js";
import { ErrorNote, useTitle } from "./ui.js";

interface LoginProps {
  why: string;
  done: (me: WhoAmIResponse) => void;
}

/** Asks the broker who the caller is, with the token that has just come. */
async function introduce(): Promise<WhoAmIResponse> {
  try {
    const me = await broker.whoAmI();
    if (me.credential !== CredentialKind.NONE) return me;
  } catch (thrown) {
    forget();
    throw thrown;
  }
  forget();
  throw new Error("the broker takes this caller for nobody; a token says who you are");
}

export function Login({ why, done }: LoginProps) {
  const [text, setText] = useState("");
  const [error, setError] = useState<MusterError | undefined>();
  const [offered, setOffered] = useState<Provider[]>([]);
  const [isBusy, setBusy] = useState(isReturn);
  useTitle("Log in");
  const failed = (thrown: unknown): void => {
    setBusy(false);
    setError(asError(thrown));
  };
  useEffect(() => {
    // Without an answer there is the way by a token.
    providers().then(setOffered, () => {});
    if (!isReturn()) return;
    finish().then(async (back) => {
      const me = await introduce();
      go(back, true);
      done(me);
    }).catch(failed);
  }, []);
  const submit = (event: Event): void => {
    event.preventDefault();
    forget();
    setToken(text.trim());
    setError(undefined);
    introduce().then(done, failed);
  };
  const leave = (provider: Provider): void => {
    setBusy(true);
    setError(undefined);
    begin(provider).catch(failed);
  };
  return (
    <main class="login">
      <h1>Muster</h1>
      {offered.map((one) => (
        <button key={`${one.issuer} ${one.clientId}`} type="button" class="primary" disabled={isBusy} onClick={() => leave(one)}>
          Log in at {new URL(one.issuer).host}
        </button>
      ))}
      <form onSubmit={submit}>
        <label>Token <input type="password" required autocomplete="off" value={text} onInput={(event) => setText(event.currentTarget.value)} /></label>
        <button type="submit" class={offered.length > 0 ? "" : "primary"} disabled={isBusy}>Log in</button>
      </form>
      {why && !error && <p class="quiet" role="status">{why}</p>}
      {isBusy && <p class="quiet" role="status">Logging in</p>}
      <ErrorNote error={error} />
      <p class="quiet">Make a token on the broker's host, or wherever you are logged in:</p>
      <pre>muster token create web</pre>
      <p class="quiet">This tab keeps what it gets until it is closed.</p>
    </main>
  );
}
