/** The build puts the style sheets here: the page loads one file, and needs no permission for any style. */
declare const STYLES: string;

const sheet = new CSSStyleSheet();
sheet.replaceSync(STYLES);
document.adoptedStyleSheets = [sheet];
