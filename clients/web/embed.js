// Writes C++ that has each built file twice, plain and compressed: embed.js DIST OUTPUT.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { gzipSync } from "node:zlib";

// docs/web.md promises it to people behind slow lines.
const MAX_GZIP_BYTES = 200_000;
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};
// A line of the C++, in bytes of the file.
const LINE_BYTES = 64;

const [dist, output] = process.argv.slice(2);

function literal(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += LINE_BYTES) {
    // Octal, because a hexadecimal escape has no end.
    const line = Array.from(bytes.subarray(at, at + LINE_BYTES), (byte) =>
      byte >= 32 && byte < 127 && !'"\\?'.includes(String.fromCharCode(byte)) ? String.fromCharCode(byte) : `\\${byte.toString(8).padStart(3, "0")}`);
    lines.push(`    "${line.join("")}"`);
  }
  return lines.join("\n");
}

const names = readdirSync(join(dist, "assets")).map((name) => `assets/${name}`).sort();
const texts = [];
const rows = [];
let total = 0;
for (const [number, name] of ["index.html", ...names].entries()) {
  const plain = readFileSync(join(dist, name));
  const gzip = gzipSync(plain, { level: 9 });
  const type = TYPES[extname(name)];
  if (!type) throw new Error(`${name}: embed.js knows no Content-Type for it`);
  total += gzip.length;
  texts.push(`constexpr char kPlain${number}[] =\n${literal(plain)};`, `constexpr char kGzip${number}[] =\n${literal(gzip)};`);
  const path = name === "index.html" ? "/" : `/${name}`;
  const tag = createHash("sha256").update(plain).digest("hex").slice(0, 32);
  rows.push(`    {"${path}", "${type}", "\\"${tag}\\"", {kPlain${number}, ${plain.length}}, {kGzip${number}, ${gzip.length}}},`);
}
if (total > MAX_GZIP_BYTES) throw new Error(`the page has ${total} bytes compressed, and may have ${MAX_GZIP_BYTES}`);
writeFileSync(output, `// Made by clients/web/embed.js.
#include "broker/http/page.h"

namespace muster::http {
namespace {

${texts.join("\n")}

constexpr Asset kAssets[] = {
${rows.join("\n")}
};

}  // namespace

std::span<const Asset> BuiltAssets() { return kAssets; }

}  // namespace muster::http
`);
console.log(`the page has ${total} bytes compressed`);
