// The words that may come next in a filter: those of its language, and names that have been seen. Pure.

import { ClusterKind } from "../client/gen/muster/v1/cluster_pb.js";
import { FailureClass, JobState } from "../client/gen/muster/v1/job_pb.js";

/** The known values of fields: "user" or "label.team" by name; "label." has the keys of labels. */
export type Seen = ReadonlyMap<string, readonly string[]>;

export interface Offers {
  /** The part of the filter that a chosen text takes the place of. */
  from: number;
  to: number;
  texts: string[];
  /** The field whose values are wanted; empty: something else is. */
  field: string;
}

interface Field {
  values?: readonly string[];
  isOrdered?: boolean;
  mayLack?: boolean;
}

// More are no list to choose from.
export const MAX_OFFERS = 12;
const AGES = ["-1h", "-12h", "-1d", "-7d", "-30d"];
const LABEL = "label.";
// docs/cli.md describes them.
const FIELDS: Readonly<Record<string, Field>> = {
  state: { values: namesOf(JobState) },
  name: {},
  user: {},
  project: {},
  cluster: { mayLack: true },
  cluster_kind: { values: namesOf(ClusterKind), mayLack: true },
  failure_class: { values: namesOf(FailureClass), mayLack: true },
  held: { values: ["true", "false"] },
  create_time: { values: AGES, isOrdered: true },
  start_time: { values: AGES, isOrdered: true, mayLack: true },
  end_time: { values: AGES, isOrdered: true, mayLack: true },
  id: { isOrdered: true },
  priority: { isOrdered: true },
  exit_code: { isOrdered: true, mayLack: true },
};
const ORDERED = [">", ">=", "<", "<="];
const HAS = ":*";
const COMPARISONS = ["=", "!=", ...ORDERED];
const TOKEN = /"(?:[^"\\]|\\.)*"?|!=|<=|>=|[=<>()]|:\*|(?:[^\s=<>!():"]|:(?!\*)|!(?!=))+/g;

function namesOf(kind: object): string[] {
  return Object.keys(kind).filter((name) => !/^\d/.test(name) && name !== "UNSPECIFIED");
}

type Wanted = "field" | "operator" | "value" | "next";

/** What is wanted behind a token, where `wanted` was wanted before it. */
function after(wanted: Wanted, token: string): Wanted {
  if (token === "(" || token === "AND" || token === "OR" || token === "NOT") return "field";
  if (token === ")" || token === HAS) return "next";
  if (COMPARISONS.includes(token)) return "value";
  return wanted === "field" || wanted === "next" ? "operator" : "next";
}

function operatorsOf(name: string): string[] {
  const field = FIELDS[name];
  const isLabel = name.startsWith(LABEL);
  return ["=", "!=", ...(field?.isOrdered ? ORDERED : []), ...(field?.mayLack || isLabel ? [HAS] : [])];
}

/** A value as a filter takes it. */
export function quoted(value: string): string {
  return value !== "" && !/[\s()"=!<>\\]/.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;
}

function unquoted(token: string): string {
  return token.startsWith('"') ? token.slice(1).replace(/"$/, "").replace(/\\(.)/g, "$1") : token;
}

function fieldsOf(seen: Seen): string[] {
  return [...Object.keys(FIELDS), ...(seen.get(LABEL) ?? []).map((key) => LABEL + key)];
}

function startingWith(texts: readonly string[], begun: string): string[] {
  const low = begun.toLowerCase();
  return texts.filter((text) => text.toLowerCase().startsWith(low) && text !== begun);
}

/** The offers for the place `at` of a filter. */
export function offersAt(filter: string, at: number, seen: Seen): Offers {
  const before = filter.slice(0, at);
  let wanted: Wanted = "field";
  let field = "";
  let begun = "";
  for (const match of before.matchAll(TOKEN)) {
    const [token] = match;
    const isOpen = match.index + token.length === before.length && !/^([=<>()]|!=|<=|>=|:\*)$/.test(token) && !/^".*[^\\]"$/.test(token);
    if (isOpen) {
      begun = token;
      break;
    }
    if (wanted === "field" || wanted === "next") field = token;
    wanted = after(wanted, token);
  }
  const from = at - begun.length;
  const offers = (texts: string[], of = ""): Offers => ({ from, to: at, texts: texts.slice(0, MAX_OFFERS), field: of });
  if (wanted === "value") {
    const values = FIELDS[field]?.values ?? seen.get(field) ?? [];
    return offers(startingWith(values, unquoted(begun)).map(quoted), field);
  }
  if (wanted === "operator") return offers(startingWith(operatorsOf(field), begun));
  // A whole field goes on with an operator.
  const known = fieldsOf(seen);
  if (begun && known.includes(begun)) {
    return { ...offers([...startingWith(known, begun), ...operatorsOf(begun).map((one) => `${begun} ${one}`.replace(" :*", HAS))]) };
  }
  const words = wanted === "next" ? ["AND", "OR", "NOT"] : ["NOT"];
  return offers(wanted === "next" && !begun ? ["AND", "OR"] : [...startingWith(known, begun), ...(begun ? startingWith(words, begun) : [])]);
}

/** The filter with a chosen text in it, and the place behind that. */
export function chosen(filter: string, offers: Offers, text: string): { filter: string; at: number } {
  const head = filter.slice(0, offers.from);
  const rest = filter.slice(offers.to);
  const gap = rest.startsWith(" ") ? "" : " ";
  const isGlued = text === HAS && head.endsWith(" ");
  const front = (isGlued ? head.trimEnd() : head) + text;
  return { filter: front + gap + rest, at: front.length + 1 };
}
