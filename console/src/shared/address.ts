/** Parts of the addresses of views and of calls. */

/** Return a path with its query, if it has one. */
export function withQuery(path: string, query: URLSearchParams): string {
  const text = query.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** Return the text of a percent-encoded segment; a segment that is not encoded correctly stays as it is. */
export function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
