import GatewayCore
import GatewayService

/// Looks at how long the listeners' certificates are good; that they fit their keys is part of reading them.
enum CertificatesCheck {
    /// A certificate that ends within so many days should have been renewed.
    static let warningDays = 14

    /// Examines the certificates of both listeners.
    static func examine(_ certificates: ListenerCertificates, now: Timestamp) -> [Finding] {
        [("http", certificates.data), ("admin", certificates.admin)]
            .compactMap { name, certificate in
                certificate.map { Self.finding($0, "\(name).tls", now: now) }
            }
    }

    private static func finding(_ certificate: ListenerCertificate, _ subject: String, now: Timestamp) -> Finding {
        let advice = "Renew it, then send the gateway a SIGHUP"
        if let problem = certificate.untimeliness(at: now) {
            return .problem(.certificates, subject, problem.message, advice)
        }
        let days = (certificate.notValidAfter - now.seconds) / 86_400
        let seen = "fits its key, and is valid for \(days) more days"
        return days < Self.warningDays
            ? .warning(.certificates, subject, seen, advice) : .ok(.certificates, subject, seen)
    }
}
