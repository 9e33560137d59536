// Cancel, hold, release and rerun: counted by the broker first, then done.

import { useEffect, useState } from "preact/hooks";
import type { MusterError } from "../client/errors.js";
import { JobsService } from "../client/gen/muster/v1/jobs_service_pb.js";
import { broker } from "./broker.js";
import { plural } from "./format.js";
import { go } from "./router.js";
import { Dialog, ErrorNote, noteError } from "./ui.js";

/** The jobs, by number or by filter, and what is to become of them. */
export interface Choice {
  verb: "Cancel" | "Hold" | "Release" | "Rerun";
  ids?: bigint[];
  filter?: string;
}

const METHODS = {
  Cancel: JobsService.method.cancelJobs, Hold: JobsService.method.holdJobs, Release: JobsService.method.releaseJobs, Rerun: JobsService.method.rerunJobs,
};
const DONE = { Cancel: "asked to end", Hold: "held", Release: "released", Rerun: "submitted once more" };
// One call changes so many.
const MAX_BY_NUMBER = 1000;

function which(choice: Choice) {
  return { jobIds: choice.ids ?? [], filter: choice.filter ?? "" };
}

/** How many jobs a change concerns; nothing is changed. */
async function countOf(choice: Choice): Promise<number> {
  const answer = await broker.ask(METHODS[choice.verb] as typeof METHODS.Cancel, { ...which(choice), validateOnly: true });
  return answer.matchedCount;
}

async function change(choice: Choice, reason: string): Promise<number> {
  const { verb } = choice;
  const named = { filter: choice.filter, jobs: choice.ids, reason };
  if (verb === "Rerun") return (await broker.rerun(named)).length;
  const done = await (verb === "Cancel" ? broker.cancel(named) : verb === "Hold" ? broker.hold(named) : broker.release(named));
  return done.length;
}

interface ChangesProps {
  choice: Choice;
  close: () => void;
  done: () => void;
}

export function Changes({ choice, close, done }: ChangesProps) {
  const [matched, setMatched] = useState<number | undefined>();
  const [error, setError] = useState<MusterError | undefined>();
  const [reason, setReason] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [result, setResult] = useState<string | undefined>();
  const { verb } = choice;

  useEffect(() => {
    if ((choice.ids?.length ?? 0) > MAX_BY_NUMBER) setMatched(choice.ids?.length);
    else countOf(choice).then(setMatched, (thrown: unknown) => setError(noteError(thrown)));
  }, []);

  const submit = (event: Event): void => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    change(choice, reason).then((changed) => {
      done();
      setResult(`${plural(changed, "job")} ${changed === 1 ? "is" : "are"} ${DONE[verb]}.`);
    }, (thrown: unknown) => {
      setBusy(false);
      setError(noteError(thrown));
    });
  };

  return (
    <Dialog title={`${verb} jobs`} close={close}>
      <form onSubmit={submit}>
        {choice.filter ? <p>All jobs that match <code>{choice.filter}</code></p> : null}
        <p aria-live="polite">{result ?? (matched === undefined ? (error ? "" : "Counting the jobs") : `This concerns ${plural(matched, "job")}.`)}</p>
        <ErrorNote error={error} />
        {verb !== "Rerun" && !result && (
          <label>Reason <input value={reason} maxLength={256} onInput={(event) => setReason(event.currentTarget.value)} /></label>
        )}
        <div class="buttons">
          {!result && <button type="submit" class="primary" disabled={isBusy || !matched}>{verb} {matched === undefined ? "" : plural(matched, "job")}</button>}
          <button type="button" onClick={(event) => event.currentTarget.closest("dialog")?.close()}>{result ? "Close" : "Do nothing"}</button>
        </div>
      </form>
    </Dialog>
  );
}

/** A job once more; goes to the new one. */
export async function rerunOne(id: bigint): Promise<void> {
  const [job] = await broker.rerun({ jobs: id });
  if (job) go(`/jobs/${job.id}`);
}
