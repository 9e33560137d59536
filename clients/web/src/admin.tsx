// Tokens, members of projects, and the audit log.

import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { useState } from "preact/hooks";
import type { MusterError } from "../client/errors.js";
import { type AuditRecord, AuditService } from "../client/gen/muster/v1/audit_service_pb.js";
import { AccessRole, IdentityService, type Token, type WhoAmIResponse } from "../client/gen/muster/v1/identity_service_pb.js";
import { MemberKind, type Project, ProjectsService } from "../client/gen/muster/v1/projects_service_pb.js";
import { broker } from "./broker.js";
import { plural, words } from "./format.js";
import { go, Link, type Place, withQuery } from "./router.js";
import { CopyButton, Dialog, ErrorNote, Mark, noteError, Scroll, Section, Time, useLoad, useTitle } from "./ui.js";
import { allProjects } from "./use.js";

const DAY_MS = 86_400_000;
const PAGE = 100;
const ROLES = [AccessRole.VIEWER, AccessRole.SUBMITTER, AccessRole.OPERATOR, AccessRole.ADMIN];
const roleWord = (role: AccessRole): string => words(AccessRole[role] ?? "");

export function AdminView({ place, me }: { place: Place; me: WhoAmIResponse | undefined }) {
  const part = place.path[1] ?? "tokens";
  const isAdmin = me?.role === AccessRole.ADMIN;
  useTitle("Admin");
  return (
    <main>
      <div class="head">
        <h1>Admin</h1>
        <nav class="tabs" aria-label="Admin">
          <Link href="/admin" isCurrent={part === "tokens"}>Tokens</Link>
          <Link href="/admin/projects" isCurrent={part === "projects"}>Projects</Link>
          {isAdmin && <Link href="/admin/audit" isCurrent={part === "audit"}>Audit</Link>}
        </nav>
      </div>
      {part === "tokens" && <Tokens me={me} />}
      {part === "projects" && <Projects />}
      {part === "audit" && <Audit place={place} />}
    </main>
  );
}

async function allTokens(): Promise<Token[]> {
  const all: Token[] = [];
  for (let pageToken = ""; ; ) {
    const page = await broker.ask(IdentityService.method.listTokens, { pageSize: 1000, pageToken });
    all.push(...page.tokens);
    pageToken = page.nextPageToken;
    if (!pageToken) return all;
  }
}

function Tokens({ me }: { me: WhoAmIResponse | undefined }) {
  const tokens = useLoad(allTokens, []);
  const [isOpen, setOpen] = useState(false);
  const [revoked, setRevoked] = useState<Token | undefined>();
  return (
    <Section title="Tokens" side={<button type="button" onClick={() => setOpen(true)}>New token</button>}>
      <ErrorNote error={tokens.error} />
      <Scroll label="Tokens">
        <table>
          <thead><tr>{["Token", "Name", "User", "Role", "Made", "Expires", "Last used", ""].map((name) => <th scope="col" key={name}>{name || <span class="unseen">Revoke</span>}</th>)}</tr></thead>
          <tbody>{(tokens.value ?? []).map((token) => (
            <tr key={String(token.id)}>
              <th scope="row">{String(token.id)}</th><td>{token.name}{token.id === me?.token?.id && <span class="quiet"> (this page)</span>}</td><td>{token.user}</td>
              <td>{roleWord(token.role)}</td><td><Time at={token.createTime} /></td><td><Time at={token.expireTime} /></td><td>{token.lastUseTime ? <Time at={token.lastUseTime} /> : "never"}</td>
              <td><button type="button" onClick={() => setRevoked(token)} aria-label={`Revoke token ${token.name} of ${token.user}`}>Revoke</button></td>
            </tr>
          ))}</tbody>
        </table>
      </Scroll>
      {isOpen && <NewToken close={() => { setOpen(false); tokens.reload(); }} />}
      {revoked && <Revoke token={revoked} close={() => { setRevoked(undefined); tokens.reload(); }} />}
    </Section>
  );
}

function NewToken({ close }: { close: () => void }) {
  const [fields, setFields] = useState({ name: "", user: "", role: AccessRole.SUBMITTER, days: 90 });
  const [error, setError] = useState<MusterError | undefined>();
  const [secret, setSecret] = useState("");
  const submit = (event: Event): void => {
    event.preventDefault();
    broker.ask(IdentityService.method.createToken, { name: fields.name, user: fields.user, role: fields.role, lifetime: durationFromMs(fields.days * DAY_MS) })
      .then((answer) => setSecret(answer.secret), (thrown: unknown) => setError(noteError(thrown)));
  };
  return (
    <Dialog title="New token" close={close}>
      {secret ? (
        <>
          <p>Nobody can read it again:</p>
          <p><code class="secret">{secret}</code></p>
          <div class="buttons"><CopyButton label="Copy" text={() => secret} /><button type="button" onClick={(event) => event.currentTarget.closest("dialog")?.close()}>Close</button></div>
        </>
      ) : (
        <form onSubmit={submit}>
          <label>Name <input required value={fields.name} onInput={(event) => setFields({ ...fields, name: event.currentTarget.value })} /></label>
          <label>User <input placeholder="yourself" value={fields.user} onInput={(event) => setFields({ ...fields, user: event.currentTarget.value })} /></label>
          <label>Role <select value={String(fields.role)} onChange={(event) => setFields({ ...fields, role: Number(event.currentTarget.value) })}>
            {ROLES.map((role) => <option key={role} value={String(role)}>{roleWord(role)}</option>)}
          </select></label>
          <label>Days <input type="number" min="1" max="366" value={fields.days} onInput={(event) => setFields({ ...fields, days: Number(event.currentTarget.value) })} /></label>
          <ErrorNote error={error} />
          <div class="buttons"><button type="submit" class="primary">Make the token</button><button type="button" onClick={(event) => event.currentTarget.closest("dialog")?.close()}>Do nothing</button></div>
        </form>
      )}
    </Dialog>
  );
}

function Revoke({ token, close }: { token: Token; close: () => void }) {
  const [error, setError] = useState<MusterError | undefined>();
  const submit = (event: Event): void => {
    event.preventDefault();
    const dialog = (event.target as HTMLElement).closest("dialog");
    broker.ask(IdentityService.method.revokeToken, { id: token.id }).then(() => dialog?.close(), (thrown: unknown) => setError(noteError(thrown)));
  };
  return (
    <Dialog title="Revoke a token" close={close}>
      <form onSubmit={submit}>
        <p>Token {token.name} of {token.user}, and those that were made with it, end at once.</p>
        <ErrorNote error={error} />
        <div class="buttons"><button type="submit" class="primary">Revoke</button><button type="button" onClick={(event) => event.currentTarget.closest("dialog")?.close()}>Do nothing</button></div>
      </form>
    </Dialog>
  );
}

function Projects() {
  const projects = useLoad(allProjects, []);
  const [named, setNamed] = useState<Project | undefined>();
  return (
    <Section title="Projects">
      <ErrorNote error={projects.error} />
      <Scroll label="Projects">
        <table>
          <thead><tr>{["Project", "Description", "Members", "Clusters", "Weight", ""].map((name) => <th scope="col" key={name}>{name || <span class="unseen">Members</span>}</th>)}</tr></thead>
          <tbody>{(projects.value ?? []).map((project) => (
            <tr key={project.name}>
              <th scope="row">{project.name}</th><td class="wrap">{project.description}</td>
              <td class="wrap">{project.members.map((member) => `${member.kind === MemberKind.GROUP ? "group " : ""}${member.name} (${roleWord(member.role)})`).join(", ")}</td>
              <td>{project.limits?.clusters.join(", ") || "any"}</td><td>{project.weight}</td>
              <td><button type="button" onClick={() => setNamed(project)} aria-label={`Members of ${project.name}`}>Members</button></td>
            </tr>
          ))}</tbody>
        </table>
      </Scroll>
      {named && <Members project={named} close={() => { setNamed(undefined); projects.reload(); }} />}
    </Section>
  );
}

function Members({ project, close }: { project: Project; close: () => void }) {
  const [members, setMembers] = useState(project.members);
  const [name, setName] = useState("");
  const [kind, setKind] = useState(MemberKind.USER);
  const [role, setRole] = useState(AccessRole.SUBMITTER);
  const [error, setError] = useState<MusterError | undefined>();
  const settle = (done: Promise<{ project?: Project }>): void => {
    setError(undefined);
    done.then((answer) => setMembers(answer.project?.members ?? []), (thrown: unknown) => setError(noteError(thrown)));
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    settle(broker.ask(ProjectsService.method.setMember, { project: project.name, member: { kind, name, role } }));
    setName("");
  };
  return (
    <Dialog title={`Members of ${project.name}`} close={close}>
      <table>
        <thead><tr>{["Member", "Role", ""].map((one) => <th scope="col" key={one}>{one || <span class="unseen">Remove</span>}</th>)}</tr></thead>
        <tbody>{members.map((member) => (
          <tr key={`${member.kind} ${member.name}`}>
            <th scope="row">{member.kind === MemberKind.GROUP ? "group " : ""}{member.name}</th><td>{roleWord(member.role)}</td>
            <td><button type="button" aria-label={`Remove ${member.name}`}
              onClick={() => settle(broker.ask(ProjectsService.method.removeMember, { project: project.name, kind: member.kind, name: member.name }))}>Remove</button></td>
          </tr>
        ))}</tbody>
      </table>
      <form onSubmit={submit}>
        <label>Kind <select value={String(kind)} onChange={(event) => setKind(Number(event.currentTarget.value))}>
          <option value={String(MemberKind.USER)}>user</option><option value={String(MemberKind.GROUP)}>group</option>
        </select></label>
        <label>Name <input required value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
        <label>Role <select value={String(role)} onChange={(event) => setRole(Number(event.currentTarget.value))}>
          {ROLES.map((one) => <option key={one} value={String(one)}>{roleWord(one)}</option>)}
        </select></label>
        <ErrorNote error={error} />
        <div class="buttons"><button type="submit" class="primary">Set the member</button><button type="button" onClick={(event) => event.currentTarget.closest("dialog")?.close()}>Close</button></div>
      </form>
    </Dialog>
  );
}

function Audit({ place }: { place: Place }) {
  const user = place.query.get("user") ?? "";
  const action = place.query.get("action") ?? "";
  const result = place.query.get("result") ?? "";
  const pageToken = place.query.get("page") ?? "";
  const [draft, setDraft] = useState({ user, action, result });
  const records = useLoad(() => broker.ask(AuditService.method.listAuditRecords, { pageSize: PAGE, pageToken, user, action, result }), [user, action, result, pageToken]);
  const search = (event: Event): void => {
    event.preventDefault();
    go(withQuery("/admin/audit", draft));
  };
  return (
    <Section title="Audit">
      <form class="filter" onSubmit={search}>
        {(["user", "action", "result"] as const).map((name) => (
          <input key={name} aria-label={name} placeholder={name} value={draft[name]} onInput={(event) => setDraft({ ...draft, [name]: event.currentTarget.value })} />
        ))}
        <button type="submit">Filter</button>
      </form>
      <ErrorNote error={records.error} />
      {records.value && <Records records={records.value.records} />}
      <div class="buttons">
        {pageToken && <Link class="button" href={withQuery("/admin/audit", { user, action, result })}>First page</Link>}
        {records.value?.nextPageToken && <Link class="button" href={withQuery("/admin/audit", { user, action, result, page: records.value.nextPageToken })}>Next page</Link>}
      </div>
    </Section>
  );
}

function Records({ records }: { records: AuditRecord[] }) {
  return (
    <Scroll label="Audit records">
      <table>
        <thead><tr>{["No", "Time", "User", "Role", "Credential", "Action", "Jobs", "Target", "Result"].map((name) => <th scope="col" key={name}>{name}</th>)}</tr></thead>
        <tbody>{records.map((one) => (
          <tr key={String(one.seq)}>
            <th scope="row">{String(one.seq)}</th><td><Time at={one.time} /></td><td>{one.user}</td><td>{one.role}</td><td>{one.credential}</td><td>{one.action}</td>
            <td>{one.jobs}</td><td class="wrap">{one.target}</td>
            <td><Mark kind={one.result === "OK" ? "good" : "bad"}>{one.result}</Mark>{one.leftOut > 0n && ` ${plural(one.leftOut, "call")}`}</td>
          </tr>
        ))}</tbody>
      </table>
    </Scroll>
  );
}
