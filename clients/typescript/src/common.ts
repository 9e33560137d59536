// The exports of both entries.

export type { ErrorFacts } from "./errors.js";
export {
  AlreadyExists, BadRequest, BrokerUnavailable, CallTimeout, CannotBePlaced, ConfigurationError, Conflict, JobCanceled, JobError, JobFailed,
  JobFileError, MusterError, NotAllowed, NotFound, NotHonoured, NotLoggedIn, NotPossible, TooMuch, WaitTimeout,
} from "./errors.js";
export type { Limits } from "./calls.js";
export type { ListOptions, SubmitOptions, WatchOptions, Which } from "./client.js";
export type { FetchOptions, Why } from "./handle.js";
export type { Job, JobFields, JobLike } from "./job.js";
export type { LogOptions, LogPiece } from "./streams.js";
