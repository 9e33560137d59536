// Colours of terminals (SGR). Other control sequences are left out of the text; none of it becomes HTML.

export interface Piece {
  text: string;
  /** Names of classes. */
  classes: string;
  /** A colour of the 256 or of 16 millions: "rgb(1, 2, 3)". */
  color?: string;
  background?: string;
}

interface Pen {
  flags: Set<string>;
  fg: string;
  bg: string;
}

// CSI, OSC with its end, and the short ones.
const SEQUENCE = /\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])/g;
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f]/g;
const FLAGS: Record<number, string> = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike" };
const CUBE = [0, 95, 135, 175, 215, 255];

function ofPalette(index: number): string {
  if (index < 16) return `${index}`;
  if (index >= 232) {
    const grey = (index - 232) * 10 + 8;
    return `rgb(${grey}, ${grey}, ${grey})`;
  }
  const at = index - 16;
  return `rgb(${CUBE[Math.floor(at / 36)]}, ${CUBE[Math.floor(at / 6) % 6]}, ${CUBE[at % 6]})`;
}

/** Takes an extended colour off the front. */
function extended(codes: number[]): string {
  const kind = codes.shift();
  const byte = (): number => Math.min(Math.max(codes.shift() ?? 0, 0), 255);
  if (kind === 5) return ofPalette(byte());
  if (kind === 2) return `rgb(${byte()}, ${byte()}, ${byte()})`;
  return "";
}

function apply(pen: Pen, parameters: string): void {
  const codes = parameters.split(/[;:]/).map(Number);
  while (codes.length > 0) {
    const code = codes.shift() ?? 0;
    if (code === 0) Object.assign(pen, { flags: new Set(), fg: "", bg: "" });
    else if (FLAGS[code]) pen.flags.add(FLAGS[code]);
    else if (code === 22) ["bold", "dim"].forEach((flag) => pen.flags.delete(flag));
    else if (code > 22 && code < 30) pen.flags.delete(FLAGS[code - 20] ?? "");
    else if (code >= 30 && code <= 37) pen.fg = String(code - 30);
    else if (code === 38) pen.fg = extended(codes);
    else if (code === 39) pen.fg = "";
    else if (code >= 40 && code <= 47) pen.bg = String(code - 40);
    else if (code === 48) pen.bg = extended(codes);
    else if (code === 49) pen.bg = "";
    else if (code >= 90 && code <= 97) pen.fg = String(code - 82);
    else if (code >= 100 && code <= 107) pen.bg = String(code - 92);
  }
}

function pieceOf(text: string, pen: Pen): Piece {
  const classes = [...pen.flags];
  const piece: Piece = { text, classes: "" };
  if (pen.fg.startsWith("rgb")) piece.color = pen.fg;
  else if (pen.fg) classes.push(`fg${pen.fg}`);
  if (pen.bg.startsWith("rgb")) piece.background = pen.bg;
  else if (pen.bg) classes.push(`bg${pen.bg}`);
  piece.classes = classes.join(" ");
  return piece;
}

/** A line as a terminal shows it: what stands before a carriage return is written over. */
export function pieces(line: string): Piece[] {
  const shown = line.replace(/\r+$/, "");
  const text = shown.slice(shown.lastIndexOf("\r") + 1);
  const pen: Pen = { flags: new Set(), fg: "", bg: "" };
  const found: Piece[] = [];
  const add = (part: string): void => {
    const clean = part.replace(CONTROLS, "");
    if (clean) found.push(pieceOf(clean, pen));
  };
  let from = 0;
  for (const match of text.matchAll(SEQUENCE)) {
    add(text.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] === "m") apply(pen, match[1] ?? "");
  }
  add(text.slice(from));
  return found;
}
