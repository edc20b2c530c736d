import { Component, createElement, type FunctionComponent } from 'preact';

/** Renders again only if a property has changed, or a signal that it has read. */
export const memo = <P extends object>(show: FunctionComponent<P>): FunctionComponent<P> => {
  class Memo extends Component<P> {
    override shouldComponentUpdate(nextProps: P): boolean {
      const keys = Object.keys(nextProps) as (keyof P)[];
      return keys.some((key) => nextProps[key] !== (this.props as P)[key]);
    }
    override render() {
      return createElement(show, this.props as P);
    }
  }
  return Memo as unknown as FunctionComponent<P>;
};
