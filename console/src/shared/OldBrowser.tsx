/** What a reader sees whose browser would round the numbers of payloads and answers. */
export function OldBrowser() {
  return (
    <main className="alone">
      <h1>This browser is too old</h1>
      <p>
        It would round large numbers. Open this address in Chrome or Edge 114, Firefox 135, Safari 18.4, or a newer one.
      </p>
    </main>
  );
}
