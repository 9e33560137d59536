import assert from "node:assert/strict";
import { test } from "node:test";
import { BadRequest } from "../src/errors.js";
import { specOf } from "../src/job.js";
import * as units from "../src/units.js";

const seconds = (text: string | number): number => {
  const { seconds: whole, nanos } = units.duration(text);
  return Number(whole) + nanos / 1e9;
};

test("quantities are those of job files", () => {
  for (const [text, bytes] of [["512M", 512e6], ["1.5G", 1.5e9], ["16Gi", 2 ** 34], ["32GB", 32e9], ["7", 7], [7, 7], ["0.1Ki", 103]] as const) {
    assert.equal(units.size(text), BigInt(bytes), String(text));
  }
  for (const text of ["", "x", "-1", "1.5.2G", "2000Ti", "1e3"]) assert.throws(() => units.size(text), BadRequest, text);
  for (const [text, want] of [["90s", 90], ["1h30m", 5400], ["1-12:00:00", 129600], ["2:30", 150], ["1:00:00", 3600], [90, 90], [1.5, 1.5], ["2d", 172800]] as const) {
    assert.equal(seconds(text), want, String(text));
  }
  for (const text of ["", "1x", "1:60", "1-24", -1, "36501d", NaN]) assert.throws(() => units.duration(text), String(text));
  assert.deepEqual(units.gpus("H100:0.5"), { type: "H100", countMillis: 500n });
  assert.deepEqual(units.gpus(8), { type: "", countMillis: 8000n });
  for (const text of ["", "H100:", ":8", "H100:0", "8.0001", "a b"]) assert.throws(() => units.gpus(text), BadRequest, text);
});

test("a job wins over its spec, which stays as it is", () => {
  const base = { name: "base", nodes: 3, priority: 5, env: { A: "1", B: "1" }, resources: { cpuMillis: 2000n } };
  const spec = specOf({ command: ["true"], name: "mine", env: { B: "2" }, gpus: "H100:2", time: "1h", retries: 0, after: [7, { id: 8 }], spec: base });
  assert.deepEqual([spec.name, spec.nodes, spec.priority, spec.env], ["mine", 3, 5, { A: "1", B: "2" }]);
  assert.deepEqual([spec.resources?.cpuMillis, spec.resources?.gpus[0]?.type, spec.timeLimit?.seconds], [2000n, "H100", 3600n]);
  assert.deepEqual([spec.retry?.maxRuns, spec.dependsOn.map((one) => one.jobId)], [1, [7n, 8n]]);
  assert.deepEqual(base.env, { A: "1", B: "1" });
  assert.throws(() => specOf({}), BadRequest);
  assert.throws(() => specOf({ command: "true", retries: 100 }), BadRequest);
});
