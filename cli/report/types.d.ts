// What the scripts of the page find outside themselves, for their types (tests/page/types.sh). Data
// are checked; elements of the page are not, since a selector does not say what it finds.
declare const Chart: any;  // Chart.js, as Debian has it

interface ParentNode {
  querySelector(selectors: string): any;
  querySelectorAll(selectors: string): NodeListOf<any>;
}

interface Document {
  getElementById(id: string): any;
  readonly activeElement: any;
}
