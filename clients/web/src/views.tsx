// Filters under names of the user's own. The browser keeps them; the broker does not know them.

import { useEffect, useState } from "preact/hooks";
import { Link, withQuery } from "./router.js";
import { CopyButton, Dialog } from "./ui.js";

export interface SavedView {
  name: string;
  filter: string;
  order: string;
}

const KEY = "muster.views";
// More are no list to choose from.
const MAX_VIEWS = 50;
const MAX_NAME = 60;

function isView(value: unknown): value is SavedView {
  const one = value as Partial<SavedView> | null;
  return typeof one === "object" && one !== null && [one.name, one.filter, one.order].every((text) => typeof text === "string");
}

/** The views that the browser has; none if it keeps nothing, or if something else is there. */
function read(): SavedView[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter(isView).slice(0, MAX_VIEWS) : [];
  } catch {
    return [];
  }
}

interface Views {
  views: SavedView[];
  /** Returns what went wrong; empty: nothing. */
  change: (to: (views: SavedView[]) => SavedView[]) => string;
}

/** The views; other tabs of the browser see a change, too. */
export function useViews(): Views {
  const [views, setViews] = useState(read);
  useEffect(() => {
    const onStorage = (event: StorageEvent): void => {
      if (event.key === KEY || event.key === null) setViews(read());
    };
    addEventListener("storage", onStorage);
    return () => removeEventListener("storage", onStorage);
  }, []);
  const change: Views["change"] = (to) => {
    const next = to(read());
    if (next.length > MAX_VIEWS) return `There are ${MAX_VIEWS} views already; delete one first.`;
    try {
      localStorage.setItem(KEY, JSON.stringify(next));
    } catch {
      return "This browser keeps nothing for the page; allow it to store data, or keep the address as a bookmark.";
    }
    setViews(next);
    return "";
  };
  return { views, change };
}

export const addressOf = (view: Omit<SavedView, "name">): string => withQuery("/jobs", { filter: view.filter, order: view.order });

interface BarProps {
  filter: string;
  order: string;
}

/** The saved views as links, and what can be done with them. */
export function ViewBar({ filter, order }: BarProps) {
  const { views, change } = useViews();
  const [isOpen, setOpen] = useState(false);
  return (
    <nav class="views" aria-label="Saved views">
      {views.map((view) => (
        <Link key={view.name} href={addressOf(view)} isCurrent={view.filter === filter && view.order === order} title={view.filter}>{view.name}</Link>
      ))}
      {filter && <CopyButton label="Copy link" text={() => location.origin + addressOf({ filter, order })} />}
      <button type="button" onClick={() => setOpen(true)}>Views</button>
      {isOpen && <ViewsDialog current={{ filter, order }} views={views} change={change} close={() => setOpen(false)} />}
    </nav>
  );
}

interface DialogProps extends Views {
  current: Omit<SavedView, "name">;
  close: () => void;
}

function ViewsDialog({ current, views, change, close }: DialogProps) {
  const [name, setName] = useState("");
  const [problem, setProblem] = useState("");
  const save = (event: Event): void => {
    event.preventDefault();
    const view = { name: name.trim(), ...current };
    if (!view.name) return;
    // A view of the same name takes the new filter.
    setProblem(change((old) => old.some((one) => one.name === view.name) ? old.map((one) => one.name === view.name ? view : one) : [...old, view]));
    setName("");
  };
  return (
    <Dialog title="Saved views" close={close}>
      <form onSubmit={save}>
        <p>{current.filter ? <code>{current.filter}</code> : "All jobs"}{current.order && <>, by <code>{current.order}</code></>}</p>
        <label>Name <input value={name} required maxLength={MAX_NAME} onInput={(event) => setName(event.currentTarget.value)} /></label>
        <div class="buttons"><button type="submit" class="primary">Save this view</button></div>
      </form>
      {problem && <p role="alert" class="note bad">{problem}</p>}
      {views.length > 0 && <ul class="view-list" aria-label="Views">{views.map((view) => <ViewRow key={view.name} view={view} views={views} change={change} />)}</ul>}
      <div class="buttons"><button type="button" onClick={(event) => event.currentTarget.closest("dialog")?.close()}>Close</button></div>
    </Dialog>
  );
}

function ViewRow({ view, views, change }: Views & { view: SavedView }) {
  const [name, setName] = useState(view.name);
  const [problem, setProblem] = useState("");
  const wanted = name.trim();
  const rename = (event: Event): void => {
    event.preventDefault();
    if (!wanted || wanted === view.name) return;
    if (views.some((one) => one.name === wanted)) return setProblem(`Another view is called "${wanted}".`);
    setProblem(change((old) => old.map((one) => one.name === view.name ? { ...one, name: wanted } : one)));
  };
  return (
    <li>
      <form onSubmit={rename}>
        <input value={name} maxLength={MAX_NAME} aria-label={`Name of view ${view.name}`} onInput={(event) => setName(event.currentTarget.value)} />
        <button type="submit" disabled={!wanted || wanted === view.name} aria-label={`Rename view ${view.name}`}>Rename</button>
        <button type="button" aria-label={`Delete view ${view.name}`} onClick={() => setProblem(change((old) => old.filter((one) => one.name !== view.name)))}>Delete</button>
      </form>
      <code class="quiet">{view.filter || "all jobs"}</code>
      {problem && <p role="alert">{problem}</p>}
    </li>
  );
}
