/** Gives the client to the components. */

import { createContext, useContext } from "react";
import type { Client } from "./client";

const ClientContext = createContext<Client | null>(null);

export const ClientProvider = ClientContext.Provider;

/** Return the client of this page. */
export function useClient(): Client {
  const client = useContext(ClientContext);
  if (client === null) throw new Error("there is no client");
  return client;
}
