<?php
/* WordPress in a temporary folder, over a database that only this machine reaches. */
define('DB_NAME', 'wordpress');
define('DB_USER', 'whorl');
define('DB_PASSWORD', 'whorl');
define('DB_HOST', 'localhost:{folder}/mariadb.sock');
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
foreach (array('AUTH_KEY', 'SECURE_AUTH_KEY', 'LOGGED_IN_KEY', 'NONCE_KEY', 'AUTH_SALT', 'SECURE_AUTH_SALT',
               'LOGGED_IN_SALT', 'NONCE_SALT') as $name) {
    define($name, $name . '{salt}');
}
/* the port is another one at every start */
define('WP_HOME', 'http://' . $_SERVER['HTTP_HOST']);
define('WP_SITEURL', 'http://' . $_SERVER['HTTP_HOST']);
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
define('WP_DEFAULT_THEME', 'twentytwentythree');
define('WP_DEBUG', false);
$table_prefix = 'wp_';
if (!defined('ABSPATH')) {
    define('ABSPATH', __DIR__ . '/');
}
require_once ABSPATH . 'wp-settings.php';
