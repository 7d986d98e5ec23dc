import Foundation

/// A PostgreSQL of the test process's own, from Debian's package: ended with the process however that ends, since a pipe
/// between them closes then.
///
/// A database with `synchronous_commit = on` waits at each COMMIT for a standby that there is not: so a test can lose
/// its answer.
/// It listens on a socket in a folder of its own only. Texts are ordered by a language's rules, so that what relies on
/// the order of bytes has to say so; nothing is flushed to the disk.
package final class PostgreSQLServer: Sendable {
    /// Why the server did not start.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// The one server of all tests that leave it running; blocks for the seconds that its start takes.
    package static let shared: Result<PostgreSQLServer, any Error> = Result { try PostgreSQLServer() }

    /// The server refuses to run as root; `setpriv` makes it another user's.
    private static let script = #"""
        set -eu
        folder=$1
        bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
        mkdir -m 700 "$folder"
        trap 'rm -rf "$folder"' EXIT
        trap 'exit 1' INT TERM
        timeout 60 "$bin/initdb" --pgdata="$folder/data" --username=postgres --auth=trust --no-sync --encoding=UTF8 \
            --locale=C.UTF-8 --locale-provider=icu --icu-locale=en-US >"$folder/log" 2>&1 ||
            { cat "$folder/log" >&2; exit 1; }
        start() {
            "$bin/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= -c fsync=off -c full_page_writes=off \
                -c max_connections=600 -c shared_buffers=64MB -c logging_collector=off \
                -c synchronous_standby_names=nobody -c synchronous_commit=local </dev/null >>"$folder/log" 2>&1 &
            server=$!
            tries=0
            until "$bin/pg_isready" --quiet --host="$folder"; do
                tries=$((tries + 1))
                [ $tries -lt 600 ] && kill -0 $server || { cat "$folder/log" >&2; exit 1; }
                sleep 0.05
            done
            echo ready
        }
        start
        # Each line asks for what `pg_ctl stop --mode=immediate` does, and for a start.
        while read -r _; do
            kill -QUIT $server
            wait $server || true
            start
        done
        kill -QUIT $server
        wait $server || true
        """#

    private let folder: String
    private let process: Spawned
    /// Its end, whatever ends this process, ends the server.
    private let life = Pipe()
    private let output = Pipe()

    /// Starts a server that ends with the object; blocks.
    package init() throws {
        self.folder = "/tmp/fcmgw-postgresql-\(UUID().uuidString.prefix(8))"
        // No other child inherits them: their ends would be waited for.
        for pipe in [self.life, self.output] {
            for handle in [pipe.fileHandleForReading, pipe.fileHandleForWriting] {
                _ = fcntl(handle.fileDescriptor, F_SETFD, FD_CLOEXEC)
            }
        }
        let shell = ["/bin/sh", "-c", Self.script, "sh", self.folder]
        let isRoot = geteuid() == 0
        let prefix = ["/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        let command = isRoot ? prefix + shell : shell
        self.process = try Spawned(
            command[0],
            Array(command.dropFirst()),
            environment: ["PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"],
            descriptors: [
                self.life.fileHandleForReading.fileDescriptor, self.output.fileHandleForWriting.fileDescriptor,
                STDERR_FILENO,
            ]
        )
        self.process.whenEnded { _ in }
        try self.life.fileHandleForReading.close()
        try self.output.fileHandleForWriting.close()
        try self.awaitStart()
    }

    private func awaitStart() throws {
        guard try self.output.fileHandleForReading.read(upToCount: 6) == Data("ready\n".utf8) else {
            throw Failure(description: "PostgreSQL did not start; is the package postgresql installed?")
        }
    }

    /// Has the server end as by a crash, and start again; blocks. What was not committed is lost.
    package func crash() throws {
        try self.life.fileHandleForWriting.write(contentsOf: Data("\n".utf8))
        try self.awaitStart()
    }

    /// The address of a database, for a user without a password.
    package func url(database: String, user: String) -> String {
        // A busy machine may keep a connection waiting for longer than libpq does.
        "postgresql:///\(database)?connect_timeout=60&host=\(self.folder)&user=\(user)"
    }
}
