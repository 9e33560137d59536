// The page: who is logged in, and the view that the address names.

import "./style.css";
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { MusterError } from "../client/errors.js";
import { AccessRole, type WhoAmIResponse } from "../client/gen/muster/v1/identity_service_pb.js";
import { AdminView } from "./admin.js";
import { asError, broker, forget, hasToken, onConnection } from "./broker.js";
import { ClustersView, ClusterView } from "./clusters.js";
import { words } from "./format.js";
import { JobView } from "./job.js";
import { JobsView } from "./jobs.js";
import { LogView } from "./log.js";
import { Login } from "./login.js";
import { goOn, logOut } from "./oidc.js";
import { go, Link, type Place, usePlace } from "./router.js";
import { ErrorNote, onRefused } from "./ui.js";
import { UseView } from "./use.js";

const VIEWS: [string, string][] = [["jobs", "Jobs"], ["clusters", "Clusters"], ["use", "Use"], ["admin", "Admin"]];

function View({ place, me }: { place: Place; me: WhoAmIResponse }) {
  const [first, second, third] = place.path;
  if (first === "jobs" && second === undefined) return <JobsView place={place} />;
  if (first === "jobs" && /^\d{1,15}$/.test(second ?? "")) {
    const id = Number(second);
    if (third === undefined) return <JobView key={id} id={id} />;
    if (third === "log") return <LogView key={id} id={id} place={place} />;
  }
  if (first === "clusters") return second === undefined ? <ClustersView /> : <ClusterView key={second} name={second} />;
  if (first === "use") return <UseView place={place} />;
  if (first === "admin") return <AdminView place={place} me={me} />;
  return <main><h1>There is no such page</h1><p><Link href="/jobs">Jobs</Link></p></main>;
}

function Page() {
  const place = usePlace();
  const [me, setMe] = useState<WhoAmIResponse | undefined>();
  const [why, setWhy] = useState("");
  const [error, setError] = useState<MusterError | undefined>();
  const [isConnected, setConnected] = useState(true);
  const [isOut, setOut] = useState(!hasToken());

  useEffect(() => {
    onConnection(setConnected);
    onRefused((reason) => {
      setWhy(reason);
      setMe(undefined);
      setOut(true);
    });
    if (hasToken()) {
      goOn();
      broker.whoAmI().then(setMe, (thrown: unknown) => {
        const refused = asError(thrown);
        if (refused.code !== "UNAUTHENTICATED") return setError(refused);
        forget();
        setWhy(refused.message);
        return setOut(true);
      });
    }
  }, []);
  useEffect(() => {
    if (!isOut && (place.path.length === 0 || place.path[0] === "login")) go("/jobs", true);
  }, [place, isOut]);

  if (isOut) return <Login why={why} done={(known) => { setMe(known); setOut(false); setWhy(""); }} />;
  const leave = (): void => void logOut().then(() => location.assign("/"));
  return (
    <>
      <header>
        <Link href="/jobs" class="brand">Muster</Link>
        <nav aria-label="Main">
          {VIEWS.map(([name, text]) => <Link key={name} href={`/${name}`} isCurrent={place.path[0] === name}>{text}</Link>)}
        </nav>
        <span class="me">
          {!isConnected && <span class="mark bad" role="status">No connection, trying again</span>}
          {me && <span title={words(AccessRole[me.role] ?? "")}>{me.user} <span class="quiet">{words(AccessRole[me.role] ?? "")}</span></span>}
          <button type="button" onClick={leave}>Log out</button>
        </span>
      </header>
      <ErrorNote error={error} />
      {me && place.path.length > 0 && <View place={place} me={me} />}
    </>
  );
}

render(<Page />, document.getElementById("page") as HTMLElement);
