<?php
/* Installs WordPress, then writes posts and comments; says "N posts" at the end. */
define('WP_INSTALLING', true);
require __DIR__ . '/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';

function wp_mail() { return true; }   /* nobody is told */

set_time_limit(0);
mt_srand(13);
$words = explode(' ', 'river stone cloud harbour market window garden engine letter winter summer silver copper '
    . 'paper lantern bridge meadow signal mirror thread anchor canyon feather island journey kettle ladder needle');

function text_of($words, $length) {
    $drawn = array();
    for ($i = 0; $i < $length; $i++) {
        $drawn[] = $words[mt_rand(0, count($words) - 1)];
    }
    return ucfirst(implode(' ', $drawn)) . '.';
}

wp_install('whorl', 'whorl', 'nobody@localhost.localdomain', false, '', wp_generate_password());
$count = (int) $_GET['posts'];
for ($number = 1; $number <= $count; $number++) {
    $paragraphs = array();
    for ($i = 0; $i < mt_rand(4, 30); $i++) {
        $paragraphs[] = '<!-- wp:paragraph --><p>' . text_of($words, mt_rand(20, 90)) . '</p><!-- /wp:paragraph -->';
    }
    $post = wp_insert_post(array(
        'post_title' => text_of($words, 5), 'post_name' => "post-$number", 'post_status' => 'publish', 'post_author' => 1,
        'post_content' => implode("\n", $paragraphs),
    ), true);
    if (is_wp_error($post)) {
        exit($post->get_error_message());
    }
    for ($i = 0; $i < mt_rand(0, 8); $i++) {
        wp_insert_comment(array('comment_post_ID' => $post, 'comment_author' => 'A reader',
            'comment_content' => text_of($words, mt_rand(5, 60)), 'comment_approved' => 1));
    }
}
echo "$count posts";
