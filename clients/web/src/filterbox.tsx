// The field for a filter. It completes fields, operators and values; the keys are those of a combobox (ARIA 1.2).

import type { RefObject } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Job } from "../client/gen/muster/v1/job_pb.js";
import { JobGrouping, JobsService } from "../client/gen/muster/v1/jobs_service_pb.js";
import { broker } from "./broker.js";
import { chosen, type Offers, offersAt } from "./filter.js";
import { plural } from "./format.js";

const GROUPINGS: Readonly<Record<string, JobGrouping>> = {
  user: JobGrouping.USER, project: JobGrouping.PROJECT, cluster: JobGrouping.CLUSTER,
};
const LABEL = "label.";
const MAX_SEEN = 200;
const NONE: Offers = { from: 0, to: 0, texts: [], field: "" };

/** The values that the broker's jobs have in a field. */
async function valuesOf(field: string): Promise<string[]> {
  const label = field.startsWith(LABEL) ? field.slice(LABEL.length) : "";
  const grouping = label ? JobGrouping.LABEL : GROUPINGS[field];
  if (grouping === undefined) return [];
  const { counts } = await broker.ask(JobsService.method.countJobs, { filter: label ? `${field}:*` : "", groupBy: [grouping], label });
  return counts.map((one) => label ? one.labelValue ?? "" : one.user || one.project || one.cluster).filter(Boolean).slice(0, MAX_SEEN);
}

/** What has been seen: names and labels of the rows, and values that the broker has told. */
function useSeen(jobs: readonly Job[], field: string): Map<string, readonly string[]> {
  const [told, setTold] = useState<ReadonlyMap<string, readonly string[]>>(new Map());
  const asked = useRef(new Set<string>());
  useEffect(() => {
    if (!field || asked.current.has(field)) return;
    asked.current.add(field);
    // Without an answer there are fewer offers; the filter works all the same.
    valuesOf(field).then((values) => setTold((old) => new Map(old).set(field, values)), () => asked.current.delete(field));
  }, [field]);
  const seen = new Map(told);
  const near = jobs.slice(0, MAX_SEEN);
  seen.set("name", [...new Set(near.map((job) => job.name))]);
  seen.set(LABEL, [...new Set(near.flatMap((job) => Object.keys(job.labels)))].sort());
  return seen;
}

interface FilterBoxProps {
  input: RefObject<HTMLInputElement>;
  value: string;
  onValue: (text: string) => void;
  jobs: readonly Job[];
}

export function FilterBox({ input, value, onValue, jobs }: FilterBoxProps) {
  const id = useId();
  const [at, setAt] = useState<number | undefined>();
  const [active, setActive] = useState(-1);
  const [field, setField] = useState("");
  const seen = useSeen(jobs, field);
  const offers = at === undefined ? NONE : offersAt(value, at, seen);
  const { texts } = offers;
  const isOpen = texts.length > 0;
  useEffect(() => setField(offers.field), [offers.field]);
  useEffect(() => document.getElementById(`${id}-${active}`)?.scrollIntoView({ block: "nearest" }), [active]);

  const openAt = (place: number): void => {
    setAt(place);
    setActive(-1);
  };
  const open = (): void => openAt(input.current?.selectionStart ?? value.length);
  const close = (): void => setAt(undefined);
  const choose = (text: string): void => {
    const next = chosen(value, offers, text);
    onValue(next.filter);
    openAt(next.at);
    // After the field has its new text.
    requestAnimationFrame(() => input.current?.setSelectionRange(next.at, next.at));
  };
  const onKey = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const picked = isOpen ? texts[active] : undefined;
    if (step !== 0) {
      event.preventDefault();
      if (!isOpen) return open();
      return setActive((old) => (old + step + texts.length + (old < 0 && step < 0 ? 1 : 0)) % texts.length);
    }
    if ((event.key === "Enter" || event.key === "Tab") && picked !== undefined && !event.shiftKey) {
      event.preventDefault();
      return choose(picked);
    }
    if (event.key === "Escape" && isOpen) {
      event.preventDefault();
      return close();
    }
    if (event.key === "Enter") close();
    return undefined;
  };
  return (
    <div class="combo">
      <input ref={input} value={value} role="combobox" aria-label="Filter" aria-expanded={isOpen} aria-controls={`${id}-list`} aria-autocomplete="list"
        aria-activedescendant={isOpen && active >= 0 ? `${id}-${active}` : undefined} spellcheck={false} autocomplete="off" autocapitalize="off"
        placeholder='Filter: state = RUNNING AND label.team = "vision"' onKeyDown={onKey} onBlur={close}
        onInput={(event) => { onValue(event.currentTarget.value); open(); }} onClick={() => at !== undefined && open()} />
      <ul id={`${id}-list`} role="listbox" aria-label="Completions" hidden={!isOpen}>
        {texts.map((text, number) => (
          <li key={text} id={`${id}-${number}`} role="option" aria-selected={number === active}
            onMouseDown={(event) => { event.preventDefault(); choose(text); }}>{text}</li>
        ))}
      </ul>
      <span class="unseen" aria-live="polite">{isOpen ? plural(texts.length, "completion") : ""}</span>
    </div>
  );
}
