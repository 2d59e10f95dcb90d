/** The parts of a shown value: text, and addresses of data in it. Strangers may have written it. */

import type { ShownValue } from "../api/types";

// As the mesh has it (functions/asya/capabilities/pauses/shown.py): printable ASCII, and no name of a user before the host.
const PATH = "[!#-;=?-Z_a-z~\\[\\]]*";
const ADDRESS = `https?://[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?:[/?#]${PATH})?|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/${PATH}`;
const WHOLE_ADDRESS = new RegExp(`^(?:${ADDRESS})$`);
const QUOTED_ADDRESSES = new RegExp(`"(${ADDRESS})"`, "g");

export interface Part {
  text: string;
  isAddress: boolean;
}

/** Return the parts of the text of a value. */
export function partsOf({ text = "", type, cut }: ShownValue): Part[] {
  if (type === "string") return [{ text, isAddress: cut !== true && WHOLE_ADDRESS.test(text) }];
  const parts: Part[] = [];
  let end = 0;
  for (const match of text.matchAll(QUOTED_ADDRESSES)) {
    const start = match.index + 1;
    const address = match[1] ?? "";
    parts.push({ text: text.slice(end, start), isAddress: false }, { text: address, isAddress: true });
    end = start + address.length;
  }
  return [...parts, { text: text.slice(end), isAddress: false }];
}
