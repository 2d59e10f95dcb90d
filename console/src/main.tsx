import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Client } from "./api/client";
import { ClientProvider } from "./api/context";
import { findSecret } from "./api/session";
import { App } from "./App";
import { keepsDigits } from "./shared/json";
import { NoSecret } from "./shared/NoSecret";
import { OldBrowser } from "./shared/OldBrowser";
import "./styles.css";

const place = document.getElementById("console");
if (place !== null) {
  const root = createRoot(place);
  const secret = await findSecret();
  if (!keepsDigits()) {
    root.render(<OldBrowser />);
  } else if (secret === null) {
    root.render(<NoSecret />);
  } else {
    const queries = new QueryClient({ defaultOptions: { queries: { retry: 1, refetchOnWindowFocus: true } } });
    root.render(
      <StrictMode>
        <QueryClientProvider client={queries}>
          <ClientProvider value={new Client(secret)}>
            <App />
          </ClientProvider>
        </QueryClientProvider>
      </StrictMode>,
    );
  }
}
