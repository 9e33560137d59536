// The files that stay behind, by the rules of .gitignore files (docs/files.md), as clients/cpp/uploads has them.
//
// Paths and patterns are byte strings: each character is one byte, as file names are bytes. Later patterns win over earlier ones, so
// files are added from the outermost inwards.

/** The sets of POSIX classes among ASCII. */
const CLASSES: Record<string, string> = {
  alnum: "0-9A-Za-z", alpha: "A-Za-z", blank: " \\t", cntrl: "\\x00-\\x1f\\x7f", digit: "0-9", graph: "!-~", lower: "a-z", print: " -~",
  punct: "!-/:-@\\[-`{-~", space: " \\t-\\r", upper: "A-Z", xdigit: "0-9A-Fa-f",
};

function byte(character: string): string {
  return `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
}

/** Removes spaces at the end, except after a backslash. */
function withoutTrailingSpaces(line: string): string {
  let end = 0;
  for (let at = 0; at < line.length; at++) {
    if (line[at] === "\\") {
      at = Math.min(at + 1, line.length - 1);
      end = at + 1;
    } else if (line[at] !== " ") {
      end = at + 1;
    }
  }
  return line.slice(0, end);
}

/** Returns the next byte of a pattern, empty at its end, and the place after it. */
function takeByte(glob: string, at: number): [string, number] {
  const place = glob[at] === "\\" ? at + 1 : at;
  return [glob[place] ?? "", place + 1];
}

/** Returns the expression of brackets that begin at `at`; undefined if they do not end, so that the pattern matches nothing. */
function brackets(glob: string, begin: number): [string, number] | undefined {
  let at = begin + 1;
  const negated = glob[at] === "!" || glob[at] === "^";
  if (negated) at++;
  let members = "";
  for (let first = true; ; first = false) {
    if (at >= glob.length) return undefined;
    if (glob[at] === "]" && !first) break;
    const end = glob.startsWith("[:", at) ? glob.indexOf(":]", at + 2) : -1;
    if (end >= 0) {
      const set = CLASSES[glob.slice(at + 2, end)];
      if (set === undefined) return undefined;
      members += set;
      at = end + 2;
      continue;
    }
    const [low, behind] = takeByte(glob, at);
    const isRange = behind + 1 < glob.length && glob[behind] === "-" && glob[behind + 1] !== "]";
    const [high, next] = isRange ? takeByte(glob, behind + 1) : [low, behind];
    if (!low || !high) return undefined;
    at = next;
    if (low <= high) members += `${byte(low)}-${byte(high)}`;
  }
  // An empty range matches no byte, and its negation any.
  if (!members) return negated ? ["[^/]", at + 1] : undefined;
  return [`(?!/)[${negated ? "^" : ""}${members}]`, at + 1];
}

/** Two or more stars between slashes, or at an end, stand for any directories; elsewhere they are like one star. */
function stars(glob: string, begin: number): [string, number] {
  let at = begin;
  while (glob[at] === "*") at++;
  const after = begin === 0 || glob[begin - 1] === "/";
  const last = at === glob.length;
  if (at - begin < 2 || !after || !(last || glob[at] === "/")) return ["[^/]*", at];
  return last ? [".*", at] : ["(?:.*/)?", at + 1];
}

function expression(glob: string): string | undefined {
  let found = "";
  for (let at = 0; at < glob.length; ) {
    let part: string;
    if (glob[at] === "*") {
      [part, at] = stars(glob, at);
    } else if (glob[at] === "?") {
      [part, at] = ["[^/]", at + 1];
    } else if (glob[at] === "[") {
      const set = brackets(glob, at);
      if (!set) return undefined;
      [part, at] = set;
    } else {
      const [one, next] = takeByte(glob, at);
      if (!one) return undefined;
      [part, at] = [byte(one), next];
    }
    found += part;
  }
  return found;
}

/** One line of a file. */
class Rule {
  readonly negated: boolean;
  readonly #directoriesOnly: boolean;
  readonly #namesOnly: boolean;
  /** Undefined: an empty line, or one that matches nothing. */
  readonly #pattern: RegExp | undefined;

  constructor(readonly base: string, text: string) {
    let line = withoutTrailingSpaces(text);
    this.negated = line.startsWith("!");
    if (this.negated) line = line.slice(1);
    this.#directoriesOnly = line.endsWith("/");
    if (this.#directoriesOnly) line = line.slice(0, -1);
    this.#namesOnly = !line.includes("/");
    if (line.startsWith("/")) line = line.slice(1);
    const source = line ? expression(line) : undefined;
    this.#pattern = source === undefined ? undefined : new RegExp(`^${source}$`, "s");
  }

  /** Compares a path that begins with the base. */
  matches(path: string, isDirectory: boolean): boolean {
    if (!this.#pattern || (this.#directoriesOnly && !isDirectory)) return false;
    const below = path.slice(this.base.length);
    return this.#pattern.test(this.#namesOnly ? below.slice(below.lastIndexOf("/") + 1) : below);
  }
}

/** The patterns of several files. */
export class Rules {
  #rules: Rule[] = [];

  /** Adds the patterns of a file in the directory `base`, which is empty or ends with '/'. */
  add(text: string, base: string): void {
    for (const line of text.replace(/^\xef\xbb\xbf/, "").split("\n")) {
      if (!line.startsWith("#")) this.#rules.push(new Rule(base, line.replace(/\r$/, "")));
    }
  }

  get count(): number {
    return this.#rules.length;
  }

  /** Leaves a directory again: all but the first rules are forgotten. */
  shrink(count: number): void {
    this.#rules.length = count;
  }

  leaveOut(path: string, isDirectory: boolean): boolean {
    const rule = this.#rules.findLast((one) => path.startsWith(one.base) && one.matches(path, isDirectory));
    return rule !== undefined && !rule.negated;
  }
}
