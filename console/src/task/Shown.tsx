/** What a pause shows of the payload. The mesh made the text, with the digits of the payload: nothing here reads a number. */

import { useQuery } from "@tanstack/react-query";
import { useClient } from "../api/context";
import type { ShownValue } from "../api/types";
import { s3Link } from "../shared/address";
import { Copy } from "../shared/parts";
import { partsOf } from "./shown";

export function Shown({ values }: { values: readonly ShownValue[] }) {
  if (values.length === 0) return null;
  return (
    <dl className="shown">
      {values.map((value) => (
        <div key={value.pointer}>
          <dt>{value.pointer || "payload"}</dt>
          <dd>{value.text === undefined ? <span className="quiet">missing</span> : <Value value={value} />}</dd>
        </div>
      ))}
    </dl>
  );
}

function Value({ value }: { value: ShownValue }) {
  return (
    <>
      <pre tabIndex={0}>
        {partsOf(value).map(({ text, isAddress }, index) =>
          isAddress ? <Address key={index} text={text} /> : <span key={index}>{text}</span>,
        )}
      </pre>
      {value.cut === true && <p className="quiet">shortened: the tab Payloads may have all of it</p>}
    </>
  );
}

/** An address of data: of the web a link, of S3 a link to the AWS console, unless the mesh is on this machine. */
function Address({ text }: { text: string }) {
  const client = useClient();
  const info = useQuery({ queryKey: ["info"], queryFn: () => client.info(), staleTime: Infinity });
  const isHere = info.data === undefined || info.data.is_local;
  const link = !text.startsWith("s3:") ? text : isHere ? null : s3Link(text, info.data.region);
  if (link !== null) {
    return (
      <a href={link} target="_blank" rel="noreferrer nofollow">
        {text}
      </a>
    );
  }
  return (
    <>
      {text} <Copy text={text} label={text} />
    </>
  );
}
