import Foundation
import NIOCore
import ProcessTestKit
import Testing

/// A proxy that stands before the gateway, and what it logs.
struct FrontProxy: Sendable {
    /// Which proxy.
    enum Kind: String, CaseIterable, Sendable {
        case haproxy
        case nginx
    }

    /// Which proxy it is.
    let kind: Kind
    /// Where it listens.
    let address: SocketAddress
    /// Its process, which logs a line for each request: `front`, status, server or its status, the request's id, and with
    /// HAProxy the port that it calls the server from.
    let process: ChildProcess

    /// It does not listen.
    struct NotListening: Error {
        let errors: String
    }

    /// Runs a body with a proxy that passes everything on to a port, over one connection as long as that is kept.
    static func with<Result>(
        _ kind: Kind,
        before port: Int,
        in directory: PrivateDirectory,
        _ body: (FrontProxy) async throws -> Result
    ) async throws -> Result {
        let program = try #require(Program.named(kind.rawValue), "\(kind) is not installed")
        let socket = directory.path("\(kind).sock")
        let file: String
        let arguments: [String]
        switch kind {
        case .haproxy:
            file = try directory.write(Self.haproxy(socket: socket, port: port), to: "haproxy.cfg")
            arguments = ["-db", "-f", file]
        case .nginx:
            file = try directory.write(Self.nginx(socket: socket, port: port, folder: directory.path), to: "nginx.conf")
            arguments = ["-p", directory.path, "-e", "stderr", "-c", file]
        }
        return try await ChildProcess.with(program, arguments) { process in
            let address = try SocketAddress(unixDomainSocketPath: socket)
            try await Self.waitUntilListening(address, process)
            return try await body(FrontProxy(kind: kind, address: address, process: process))
        }
    }

    /// Tries to connect until it can.
    private static func waitUntilListening(_ address: SocketAddress, _ process: ChildProcess) async throws {
        let probe = HostileRequest.probe("start")
        do {
            try await wait { (try? await RawExchange.bytes(to: address, sending: probe))?.isEmpty == false }
        } catch {
            throw NotListening(errors: process.errors.text + process.output.text)
        }
    }

    private static func haproxy(socket: String, port: Int) -> String {
        """
        global
            log stdout format raw local0
            nbthread 1
        defaults
            mode http
            log global
            timeout connect 2s
            timeout client 2s
            timeout server 5s
            timeout http-request 1s
            timeout http-keep-alive 1s
            http-reuse always
        frontend front
            bind \(socket)
            http-request capture req.hdr(X-Request-ID) len 64
            log-format "front %ST %s %[capture.req.hdr(0)] %bp"
            default_backend back
        backend back
            server gateway 127.0.0.1:\(port) pool-max-conn 1

        """
    }

    private static func nginx(socket: String, port: Int, folder: String) -> String {
        let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path \(folder)/nginx-\($0);" }
            .joined(separator: "\n    ")
        return """
            daemon off;
            master_process off;
            pid \(folder)/nginx.pid;
            error_log stderr error;
            events {}
            http {
                log_format front 'front $status $upstream_status $http_x_request_id';
                access_log /dev/stdout front;
                \(folders)
                client_header_timeout 1s;
                client_body_timeout 1s;
                keepalive_timeout 1s;
                client_max_body_size 8m;
                upstream gateway {
                    server 127.0.0.1:\(port);
                    keepalive 1;
                }
                server {
                    listen unix:\(socket);
                    location / {
                        proxy_pass http://gateway;
                        proxy_http_version 1.1;
                        proxy_set_header Connection "";
                        proxy_set_header Host $http_host;
                    }
                }
            }

            """
    }
}
