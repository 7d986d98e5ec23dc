import Foundation
import NIOCore
import StrictJSON

/// The configuration that `init` writes: the keys that a person decides, with short comments.
struct ConfigurationText {
    let layout: InitCommand.Layout
    let tls: MadeGateway.TLS?
    /// The address of a server to use instead of Google's.
    let fcm: String?
    let fcmCAFile: String?

    var text: String {
        """
        # Configuration of fcm-gateway.
        #
        #   fcm-gateway config check --config \(self.layout.configuration)
        #       lists every fault with its line and key
        #   fcm-gateway config show --config \(self.layout.configuration)
        #       prints every key, its value and its source
        #
        # A variable wins over this file: http.port is GATEWAY_HTTP_PORT. Secrets are refused here; they come from
        # GATEWAY_MASTER_KEY_FILE and GATEWAY_ADMIN_TOKEN_FILE.

        # The directory of the store, the audit and all other files that the gateway writes.
        dataDir: \(Self.scalar(self.layout.dataDirectory))

        # The data listener, for tenants' services.
        http:
        \(self.dataListener)

        # The admin listener, for operators, probes and Prometheus. Beyond this machine it needs TLS (admin.tls).
        admin:
          host: 127.0.0.1
          port: 8081

        # Limits of tenants without limits of their own: 9000 messages a second, and 9000 at once.
        # limits:
        #   defaults:
        #     tenant: [9000/1s:9000]
        \(self.upstream)
        audit:
          # bounded: a kill -9 may lose the records of the last 10 ms. strict: a send waits for its record.
          mode: bounded
          retentionDays: 400

        log:
          level: info
          # json for collectors, text for people
          format: json

        """
    }

    private var dataListener: String {
        guard let tls = self.tls else {
            return """
                  # API keys travel in the clear: beyond this machine, set tls or listen behind a proxy that speaks TLS.
                  host: 127.0.0.1
                  port: 8080
                  # tls:
                  #   certificateFile: /etc/fcm-gateway/tls/server.crt
                  #   privateKeyFile: /etc/fcm-gateway/tls/server.key
                """
        }
        return """
              host: 0.0.0.0
              port: 8080
              # A SIGHUP (systemctl reload) reads both files again.
              tls:
                certificateFile: \(Self.scalar(tls.certificate))
                privateKeyFile: \(Self.scalar(tls.privateKey))
            """
    }

    private var upstream: String {
        guard let fcm = self.fcm else { return "" }
        let authority = fcm.replacing(/^https?:\/\//, with: "")
        let authorities = self.fcmCAFile.map { file in
            "\n  caFile: \(Self.scalar(URL(fileURLWithPath: file).standardizedFileURL.path))"
        }
        return """

            # The server to send to, in place of Google's.
            upstream:
              legacyEndpoint: \(Self.scalar(fcm))
              v1Endpoint: \(Self.scalar(fcm))
              iidEndpoint: \(Self.scalar(fcm))
              allowedTokenHosts: [\(Self.scalar(authority))]\(authorities ?? "")

            """
    }

    /// Returns a text in double quotes, whose escapes are the same in YAML and JSON.
    private static func scalar(_ text: String) -> String {
        var writer = JSONWriter()
        writer.string(text)
        return String(buffer: writer.finish())
    }
}
