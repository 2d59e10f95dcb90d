/** What a reader sees who has opened the address without its secret. */
export function NoSecret() {
  return (
    <main className="alone">
      <h1>The console is closed here</h1>
      <p>
        This address has no secret, or its server has ended. Type <code>asya ui</code> in a terminal to open the console.
      </p>
    </main>
  );
}
