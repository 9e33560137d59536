// The small parts that all views share.

import type { ComponentChildren, RefObject } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { MusterError } from "../client/errors.js";
import { JobState } from "../client/gen/muster/v1/job_pb.js";
import { asError, forget, isHeard, isLoginError } from "./broker.js";
import { fullTime, time, words } from "./format.js";
import type { Timestamp } from "@bufbuild/protobuf/wkt";

let askForLogin: ((why: string) => void) | undefined;
/** The page sets what a refused credential does. */
export const onRefused = (ask: (why: string) => void): void => {
  askForLogin = ask;
};

/** An error of the broker. A credential that it does not accept ends the session. */
export function noteError(thrown: unknown): MusterError {
  const error = asError(thrown);
  if (isLoginError(error)) {
    forget();
    askForLogin?.(error.message);
  }
  return error;
}

export interface Loaded<T> {
  value: T | undefined;
  error: MusterError | undefined;
  isLoading: boolean;
  reload: () => void;
}

/** Asks the broker, again when a word of `by` changes and every so often; an answer to an older question is dropped. */
export function useLoad<T>(ask: () => Promise<T>, by: unknown[], everyMs = 0): Loaded<T> {
  const [state, setState] = useState<{ value?: T; error?: MusterError; isLoading: boolean }>({ isLoading: true });
  const latest = useRef(0);
  const run = useCallback(() => {
    const number = ++latest.current;
    setState((old) => ({ ...old, isLoading: true }));
    ask().then((value) => {
      isHeard();
      if (number === latest.current) setState({ value, isLoading: false });
    }, (thrown: unknown) => {
      const error = noteError(thrown);
      if (number === latest.current) setState((old) => ({ ...old, error, isLoading: false }));
    });
  }, by);
  useEffect(() => {
    setState({ isLoading: true });
    run();
    const timer = everyMs > 0 ? setInterval(() => document.visibilityState === "visible" && run(), everyMs) : 0;
    return () => {
      latest.current += 1;
      clearInterval(timer);
    };
  }, [run, everyMs]);
  return { value: state.value, error: state.error, isLoading: state.isLoading, reload: run };
}

export function ErrorNote({ error }: { error: MusterError | undefined }) {
  if (!error) return null;
  const fields = Object.entries(error.fields ?? {}).filter(([, text]) => !error.message.includes(text));
  return (
    <div class="note bad" role="alert">
      <p>{error.message}</p>
      {fields.map(([field, text]) => <p key={field}>{field}: {text}</p>)}
      {error.remedy && <p class="remedy">{error.remedy}</p>}
    </div>
  );
}

/** The height of an element in pixels; before it is there, about that of a window. */
export function useHeight(element: RefObject<HTMLElement>): number {
  const [height, setHeight] = useState(600);
  useEffect(() => {
    const watched = element.current;
    if (!watched) return undefined;
    const observer = new ResizeObserver(() => setHeight(watched.clientHeight));
    observer.observe(watched);
    return () => observer.disconnect();
  }, []);
  return height;
}

export const stateWord = (state: JobState): string => JobState[state] ?? String(state);

/** A state of a job: its word, and a mark in its colour. */
export function State({ state, held }: { state: JobState; held?: boolean }) {
  const word = stateWord(state);
  return <span class={`state ${word.toLowerCase()}`}>{words(word)}{held ? ", held" : ""}</span>;
}

/** Something good, doubtful or bad, in words and in colour. */
export function Mark({ kind, children }: { kind: "good" | "warn" | "bad" | "none"; children: ComponentChildren }) {
  return <span class={`mark ${kind}`}>{children}</span>;
}

export function Time({ at }: { at: Timestamp | undefined }) {
  if (!at) return null;
  return <time dateTime={fullTime(at)} title={fullTime(at)}>{time(at)}</time>;
}

/** A name and its value; nothing if there is no value. */
export function Fact({ name, children }: { name: string; children?: ComponentChildren }) {
  if (children === undefined || children === null || children === "" || children === false) return null;
  return <div class="fact"><dt>{name}</dt><dd>{children}</dd></div>;
}

interface SectionProps {
  title: string;
  children: ComponentChildren;
  side?: ComponentChildren;
}

export function Section({ title, side, children }: SectionProps) {
  return (
    <section aria-label={title}>
      <div class="section-head"><h2>{title}</h2>{side}</div>
      {children}
    </section>
  );
}

/** A table that scrolls by itself where it is too wide. */
export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return <div class="scroll" role="group" aria-label={label} tabIndex={0}>{children}</div>;
}

export function CopyButton({ label, text }: { label: string; text: () => string }) {
  const [isDone, setDone] = useState(false);
  const copy = (): void => {
    void copyText(text()).then(() => {
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    });
  };
  return <button type="button" onClick={copy}>{isDone ? "Copied" : label}</button>;
}

async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // A page over plain HTTP has no clipboard; a selection can be copied all the same.
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} - Muster`;
  }, [title]);
}

/** Draws again every so often, for times that pass. */
export function useTick(everyMs: number): void {
  const [, setTicks] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && setTicks((ticks) => ticks + 1), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
}

interface DialogProps {
  title: string;
  close: () => void;
  children: ComponentChildren;
}

/** A window above the page. The browser keeps the focus in it, and Escape closes it. */
export function Dialog({ title, close, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    element.current?.showModal();
  }, []);
  return <dialog ref={element} aria-label={title} onClose={close}><h2>{title}</h2>{children}</dialog>;
}
