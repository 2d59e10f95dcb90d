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

/** Return the address of an object in the AWS console; null for anything that is no address in S3. */
export function s3Link(uri: string, region: string): string | null {
  const [, bucket, key] = /^s3:\/\/([a-z0-9][a-z0-9.-]+)\/(.+)$/.exec(uri) ?? [];
  if (bucket === undefined || key === undefined || !/^[a-z0-9-]+$/.test(region)) return null;
  const query = new URLSearchParams({ region, prefix: key });
  return `https://${region}.console.aws.amazon.com/s3/object/${encodeURIComponent(bucket)}?${query}`;
}

/** Return the address of a trace in the AWS console; null for anything that is no id of a trace. */
export function traceLink(traceId: string, region: string): string | null {
  const [, time, rest] = /^([0-9a-f]{8})([0-9a-f]{24})$/.exec(traceId) ?? [];
  if (time === undefined || rest === undefined || !/^[a-z0-9-]+$/.test(region)) return null;
  return `https://${region}.console.aws.amazon.com/cloudwatch/home?region=${region}#xray:traces/1-${time}-${rest}`;
}
