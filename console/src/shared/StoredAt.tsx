import { useQuery } from "@tanstack/react-query";
import { useClient } from "../api/context";
import { s3Link } from "./address";
import { Copied } from "./Facts";

/** An address in S3: a link to the AWS console, unless the mesh is on this machine, and a button that copies it. */
export function StoredAt({ uri, label }: { uri: string; label: string }) {
  const client = useClient();
  const info = useQuery({ queryKey: ["info"], queryFn: () => client.info(), staleTime: Infinity });
  const link = info.data === undefined || info.data.is_local ? null : s3Link(uri, info.data.region);
  return (
    <>
      {link !== null && (
        <>
          <a href={link} target="_blank" rel="noreferrer">
            in the AWS console
          </a>{" "}
        </>
      )}
      <Copied text={uri} label={label} />
    </>
  );
}
