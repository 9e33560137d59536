// The address of the page, and links that change it. broker/http/page.cc knows the first words of the addresses.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

export interface Place {
  /** "/jobs/42/log" as ["jobs", "42", "log"]. */
  path: string[];
  query: URLSearchParams;
}

const listeners = new Set<() => void>();

function here(): Place {
  const path = location.pathname.split("/").filter(Boolean).map((word) => {
    try {
      return decodeURIComponent(word);
    } catch {
      return word;
    }
  });
  return { path, query: new URLSearchParams(location.search) };
}

export function go(href: string, replace = false): void {
  if (href === location.pathname + location.search) return;
  if (replace) history.replaceState(null, "", href);
  else history.pushState(null, "", href);
  for (const tell of listeners) tell();
}

/** The address with other parameters; empty ones are left out. */
export function withQuery(path: string, query: Record<string, string | undefined>): string {
  const words = new URLSearchParams(Object.entries(query).filter((one): one is [string, string] => Boolean(one[1]))).toString();
  return words ? `${path}?${words}` : path;
}

export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const tell = (): void => setPlace(here());
    listeners.add(tell);
    addEventListener("popstate", tell);
    return () => {
      listeners.delete(tell);
      removeEventListener("popstate", tell);
    };
  }, []);
  return place;
}

interface LinkProps {
  href: string;
  children: ComponentChildren;
  class?: string;
  isCurrent?: boolean;
  title?: string;
}

export function Link({ href, children, isCurrent, ...rest }: LinkProps) {
  const follow = (event: MouseEvent): void => {
    // With a key or another button it is the browser's.
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(href);
  };
  return <a href={href} onClick={follow} aria-current={isCurrent ? "page" : undefined} {...rest}>{children}</a>;
}
