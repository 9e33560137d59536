// The errors of this package. All of them are MusterErrors.
//
// The class tells what a program can do about an error; `reason` says exactly what happened, by the words that
// docs/troubleshooting.md of Muster explains. They never change their meaning, as against the sentences.

import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.js";
import { type StateReason, StateReasonSchema } from "./gen/muster/v1/facts_pb.js";
import type { Failure, Job } from "./gen/muster/v1/job_pb.js";
import type { JobHandle } from "./handle.js";

/** The facts of an error, beside its sentence. */
export interface ErrorFacts {
  /** gRPC's status, e.g. "NOT_FOUND"; empty: the error is not the broker's. */
  code?: string;
  /** ErrorInfo's reason, e.g. "CANNOT_BE_PLACED"; empty: it has none. */
  reason?: string;
  /** ErrorInfo's metadata, e.g. the place of the bad request in a batch. */
  metadata?: Record<string, string>;
  /** The advice alone, where the broker sends it apart from the message; empty: the message has it. */
  remedy?: string;
  /** With bad input: each field, and what is wrong with it. */
  fields?: Record<string, string>;
  /** Milliseconds after which the broker wants to be asked again; undefined: it says nothing of that. */
  retryAfterMs?: number;
  /** With CannotBePlaced: what each cluster lacks. */
  why?: StateReason;
}

/** An error: a sentence that says what is wrong and what to do, and facts for programs. */
export class MusterError extends Error {
  readonly code: string;
  readonly reason: string;
  readonly metadata: Record<string, string>;
  readonly remedy: string;
  readonly fields: Record<string, string>;
  readonly retryAfterMs: number | undefined;
  readonly why: StateReason | undefined;
  /** With submitMany: the first of its jobs, which are submitted, because they went in messages before the one that failed. */
  submitted: JobHandle[] = [];

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message);
    this.name = new.target.name;
    this.code = facts.code ?? "";
    this.reason = facts.reason ?? "";
    this.metadata = facts.metadata ?? {};
    this.remedy = facts.remedy ?? "";
    this.fields = facts.fields ?? {};
    this.retryAfterMs = facts.retryAfterMs;
    this.why = facts.why;
  }
}

/** The address, the token, the CA or a file of the user is missing or wrong, or what answers there is no broker. Nothing was submitted. */
export class ConfigurationError extends MusterError {}
/** A value is wrong: `fields` names each one. */
export class BadRequest extends MusterError {}
/** The broker does not know a field or a call, or no cluster honours it yet. */
export class NotHonoured extends MusterError {}
/** There is no such job, run, rank, path or cluster. */
export class NotFound extends MusterError {}
/** The requestId belongs to another spec. */
export class AlreadyExists extends MusterError {}
/** The user's rights do not include this (PERMISSION_DENIED). */
export class NotAllowed extends MusterError {}
/** The token or the login is missing, unknown or over (UNAUTHENTICATED). */
export class NotLoggedIn extends MusterError {}
/** The state of the job, the run or the cluster does not allow it (FAILED_PRECONDITION). */
export class NotPossible extends MusterError {}
/** No known cluster can ever run the job: `why` has what each of them lacks. */
export class CannotBePlaced extends NotPossible {}
/** A bound is reached: too many jobs wait, a quota, the broker's disk (RESOURCE_EXHAUSTED). */
export class TooMuch extends MusterError {}
/** Nobody answered, for as long as this client tries. */
export class BrokerUnavailable extends MusterError {}
/** The broker did not answer in time. */
export class CallTimeout extends MusterError {}
/** The time given to a wait is over; the job goes on. */
export class WaitTimeout extends MusterError {}
/** Something changed meanwhile (ABORTED): try again. */
export class Conflict extends MusterError {}
/** The command `muster` refused a job file, or is not there to read it. */
export class JobFileError extends MusterError {}

/** A job has not succeeded. */
export class JobError extends MusterError {
  /** The job as it ended. */
  readonly job: Job;

  constructor(message: string, job: Job) {
    super(message, { remedy: job.failure?.remedy });
    this.job = job;
  }
}

/** It has failed: `failure.code` says what happened, `failure.failureClass` whose fault it was. */
export class JobFailed extends JobError {
  get failure(): Failure | undefined {
    return this.job.failure;
  }
}

/** Someone canceled it. */
export class JobCanceled extends JobError {}

type Kind = new (message: string, facts?: ErrorFacts) => MusterError;

const STATUSES: Record<Code, [string, Kind]> = {
  [Code.Canceled]: ["CANCELLED", MusterError],
  [Code.Unknown]: ["UNKNOWN", MusterError],
  [Code.InvalidArgument]: ["INVALID_ARGUMENT", BadRequest],
  [Code.DeadlineExceeded]: ["DEADLINE_EXCEEDED", CallTimeout],
  [Code.NotFound]: ["NOT_FOUND", NotFound],
  [Code.AlreadyExists]: ["ALREADY_EXISTS", AlreadyExists],
  [Code.PermissionDenied]: ["PERMISSION_DENIED", NotAllowed],
  [Code.ResourceExhausted]: ["RESOURCE_EXHAUSTED", TooMuch],
  [Code.FailedPrecondition]: ["FAILED_PRECONDITION", NotPossible],
  [Code.Aborted]: ["ABORTED", Conflict],
  [Code.OutOfRange]: ["OUT_OF_RANGE", BadRequest],
  [Code.Unimplemented]: ["UNIMPLEMENTED", NotHonoured],
  [Code.Internal]: ["INTERNAL", MusterError],
  [Code.Unavailable]: ["UNAVAILABLE", BrokerUnavailable],
  [Code.DataLoss]: ["DATA_LOSS", MusterError],
  [Code.Unauthenticated]: ["UNAUTHENTICATED", NotLoggedIn],
};

// The library gives these codes to a connection that breaks. An error of the broker's has details.
const OF_TRANSPORT = new Set([Code.Canceled, Code.Unknown, Code.Internal, Code.InvalidArgument, Code.Aborted, Code.DataLoss]);

// The library has codes of its own for these answers, of which a repeat may bring others, or which need no words of ours.
const STATUSES_OF_LIBRARY = new Set([401, 403, 404, 408, 425, 429]);

/** The error of an answer that is none of a broker's, where a repeat would bring the same; undefined: it is not such. */
function faultOfProxy(error: ConnectError): MusterError | undefined {
  // The words of the library for an answer without an error of a broker. A browser does not tell the status of a redirection: 0.
  const [, digits] = (error.details.length === 0 && /^HTTP (\d{1,3})$/.exec(error.rawMessage)) || [];
  const status = Number(digits ?? NaN);
  if (status === 0 || (status >= 300 && status < 400)) {
    const place = error.metadata.get("location");
    return new ConfigurationError(
      `the broker's address answers with a redirection${place ? ` to ${JSON.stringify(place)}` : ""}, which is not followed; name the broker's own address`,
    );
  }
  if (status === 413) {
    return new TooMuch("a proxy at the broker's address takes no request of this size (HTTP 413); raise its limit, or name the broker's own address");
  }
  if (status >= 400 && status < 500 && !STATUSES_OF_LIBRARY.has(status)) {
    return new ConfigurationError(`what answers at the broker's address is no broker, or a proxy that refuses the request (HTTP ${status})`);
  }
  return undefined;
}

/**
 * The same error as one of ours. A broken connection is UNAVAILABLE here, as for every other client of Muster. Throws what is neither
 * ours nor the library's: a mistake in a program, which no repeat mends.
 */
export function fromConnect(thrown: unknown): MusterError {
  if (thrown instanceof MusterError) return thrown;
  if (!(thrown instanceof ConnectError)) throw thrown;
  const error = thrown;
  const fault = faultOfProxy(error);
  if (fault) return fault;
  const [info] = error.findDetails(ErrorInfoSchema);
  const [retry] = error.findDetails(RetryInfoSchema);
  const [bad] = error.findDetails(BadRequestSchema);
  const [why] = error.findDetails(StateReasonSchema);
  const facts: ErrorFacts = {
    reason: info?.reason,
    metadata: info?.metadata,
    remedy: why?.remedy,
    why,
    fields: Object.fromEntries((bad?.fieldViolations ?? []).map((one) => [one.field, one.description])),
  };
  if (retry) {
    facts.retryAfterMs = Number(retry.retryDelay?.seconds ?? 0n) * 1000 + (retry.retryDelay?.nanos ?? 0) / 1e6;
  }
  const cut = error.code === Code.Canceled && !info;
  const broken = error.details.length === 0 && OF_TRANSPORT.has(error.code);
  const [code, kind] = STATUSES[cut || broken ? Code.Unavailable : error.code];
  const message = cut ? "the broker cut the call off" : error.rawMessage || code;
  return new (info?.reason === "CANNOT_BE_PLACED" ? CannotBePlaced : kind)(message, { ...facts, code });
}

/** Tells whether the transport failed, and not the broker, whose answers have a reason. */
export function isTransport(error: MusterError): boolean {
  return (error.code === "UNAVAILABLE" || error.code === "DEADLINE_EXCEEDED") && error.reason === "";
}

/** Tells whether the same call may well succeed later. */
export function mayPass(error: MusterError): boolean {
  return (error.code === "UNAVAILABLE" && isTransport(error)) || error.retryAfterMs !== undefined;
}
