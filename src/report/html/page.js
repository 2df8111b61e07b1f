addEventListener("pointermove", e => {
  const hit = e.target.closest && e.target.closest(".hits rect");
  for (const out of document.querySelectorAll(".readout")) out.textContent = "";
  if (hit) hit.closest("figure").querySelector(".readout").textContent = hit.firstChild.textContent;
});
