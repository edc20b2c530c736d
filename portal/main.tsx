import './leaving.js';
import { render } from 'preact';
import { resume } from './api.js';
import { Portal } from './portal.js';

const root = document.getElementById('app');
if (root !== null) {
  root.replaceChildren();
  render(<Portal />, root);
  void resume();
}
