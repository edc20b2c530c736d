import './leaving.js';
import './styles.js';
import { render } from 'preact';
import { start } from './api.js';
import { Portal } from './portal.js';

const root = document.getElementById('app');
if (root !== null) {
  start(root.dataset['session']);
  root.replaceChildren();
  render(<Portal />, root);
}
