// The spec of a job as a job file. Job files may be in the form of the API (docs/job-file.md).

const PLAIN = /^[A-Za-z_][A-Za-z0-9_./:@-]*$/;
// YAML reads these as something else than text.
const WORDS = new Set(["y", "n", "yes", "no", "true", "false", "on", "off", "null", "~"]);

function scalar(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value);
  const isPlain = PLAIN.test(value) && !WORDS.has(value.toLowerCase()) && !value.endsWith(":") && !value.includes(": ");
  // A text in JSON's quotes is one in YAML's double quotes.
  return isPlain ? value : JSON.stringify(value);
}

// A block keeps only lines of plain characters, and what begins without a space.
const BLOCK = /^[^\s][\t\n\x20-\x7e\u00a0-\ud7ff]*$/;

function lines(value: unknown, indent: string): string[] {
  if (Array.isArray(value)) {
    return value.flatMap((one) => {
      const [first = "", ...rest] = lines(one, "");
      return [`${indent}- ${first}`, ...rest.map((line) => `${indent}  ${line}`)];
    });
  }
  if (value === null || typeof value !== "object") return [`${indent}${scalar(value)}`];
  const entries = Object.entries(value);
  if (entries.length === 0) return [`${indent}{}`];
  return entries.flatMap(([name, one]: [string, unknown]) => {
    const key = `${indent}${scalar(name)}:`;
    if (typeof one === "string" && one.includes("\n") && BLOCK.test(one)) {
      const keep = one.endsWith("\n\n") || one === "\n" ? "|+" : one.endsWith("\n") ? "|" : "|-";
      return [`${key} ${keep}`, ...one.replace(/\n$/, "").split("\n").map((line) => (line ? `${indent}  ${line}` : ""))];
    }
    if (one !== null && typeof one === "object" && Object.keys(one).length > 0) return [key, ...lines(one, `${indent}  `)];
    if (Array.isArray(one)) return [`${key} []`];
    return [`${key} ${lines(one, "").join("")}`];
  });
}

/** Whatever JSON can say, as YAML. */
export function toYaml(value: unknown): string {
  return `${lines(value, "").join("\n")}\n`;
}
