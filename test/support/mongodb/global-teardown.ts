export { stop as default } from './global-setup';
