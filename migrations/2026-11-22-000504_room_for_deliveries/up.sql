-- An update stays within the page only where the page has room. Holds for pages that are filled from now on.
ALTER TABLE alerts SET (fillfactor = 80);
